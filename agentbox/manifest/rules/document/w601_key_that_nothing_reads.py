"""W601: a key made unused by a choice."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.rules.document._unread_keys import unread_keys
from agentbox.manifest.toml_text import format_toml

CODE, SINCE = "W601", "0.1"
TITLE = "key that nothing reads"
REASON = """A key that the chosen implementation or mode does not read appears to have an effect. It
has none until the choice changes."""
READS = ("**",)
BAD = """
[adapters.memory]
use = "local-sqlite"
pool_size = 4
"""
GOOD = """
[adapters.memory]
use = "external-pg"
dsn_env = "MEMORY_DSN"
pool_size = 4
"""
LAST = True


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per key without an error."""
    for key, failed in unread_keys(context):
        choices = [condition for condition in failed if not condition.is_switch]
        if choices and key not in context.errors:
            condition_failed = choices[0]
            yield context.finding(
                key,
                message=f"nothing reads {key} while {condition_failed.key} is "
                f"{format_toml(context[condition_failed.key])}",
                remedy=f"Remove {key}, or change {condition_failed.key}.",
                related=(condition_failed.key,),
            )
