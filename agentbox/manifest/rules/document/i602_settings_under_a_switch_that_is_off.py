"""I602: settings kept for later."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.rules.document._unread_keys import unread_keys

CODE, SINCE = "I602", "0.1"
TITLE = "settings under a switch that is off"
REASON = (
    "The settings do nothing while their switch is off. That is fine when they are kept for later."
)
READS = ("**",)
BAD = """
[privacy]
enabled = false
entities = ["email"]
"""
GOOD = """
[privacy]
enabled = true
entities = ["email"]
"""
LAST = True


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per table, at its first such key."""
    tables: dict[str, list[str]] = {}
    switches: dict[str, str] = {}
    for key, failed in unread_keys(context):
        if all(condition.is_switch for condition in failed) and key not in context.errors:
            tables.setdefault(key.rpartition(".")[0], []).append(key)
            switches[key.rpartition(".")[0]] = failed[0].key
    for table, keys in tables.items():
        names = ", ".join(key.rpartition(".")[2] for key in keys)
        yield context.finding(
            keys[0],
            message=f"[{table}] has settings ({names}) that do nothing while {switches[table]} is "
            "off",
            remedy="No action is needed if they are kept for later.",
            related=(switches[table], *keys[1:]),
        )
