"""What the schema cannot say: rules over a manifest, one file each. The folder's listing is their table of contents."""

from agentbox.rules.discovery import Rule, discover
from agentbox.rules.engine import NotEvaluated, Report, RuleBug, run
from agentbox.rules.lock_input import MISSING, LockInput, read_lock

__all__ = ["MISSING", "LockInput", "NotEvaluated", "Report", "Rule", "RuleBug", "discover", "read_lock", "run"]
