"""Redaction in front of the slots: detectors, the walk over a call's arguments, the policy."""

from agentbox.privacy.flow import Flow
from agentbox.privacy.guard import Cleaned, Guard, Rejected, guard_of

__all__ = ["Cleaned", "Flow", "Guard", "Rejected", "guard_of"]
