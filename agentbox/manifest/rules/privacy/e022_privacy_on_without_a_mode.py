"""E022: privacy is enabled with mode off."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E022", "0.1"
TITLE = "privacy on, no mode"
REASON = "With mode off nothing is filtered, although privacy is enabled."
READS = ("privacy.enabled", "privacy.mode")
BAD = """
[privacy]
mode = "off"
"""
GOOD = """
[privacy]
mode = "rules"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if context["privacy.enabled"] and context["privacy.mode"] == "off":
        yield context.finding(
            "privacy.mode",
            message="privacy is enabled and its mode is off: nothing would be filtered",
            remedy='Set privacy.mode = "rules", or privacy.enabled = false.',
        )
