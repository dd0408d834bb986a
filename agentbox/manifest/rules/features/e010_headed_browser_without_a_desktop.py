"""E010: a headed browser without a display."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E010", "0.1"
TITLE = "headed browser without a desktop"
REASON = (
    """A browser that shows its window needs a display; without one it ends as soon as it starts."""
)
READS = ("skills.browser.playwright", "skills.browser.headed", "desktop.enabled")
BAD = """
[skills.browser]
playwright = true
headed = true
"""
GOOD = """
[skills.browser]
playwright = true
headed = true
[desktop]
enabled = true
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if (
        context["skills.browser.playwright"]
        and context["skills.browser.headed"]
        and not context["desktop.enabled"]
    ):
        yield context.finding(
            "skills.browser.headed",
            message="the browser is headed, and the desktop is off",
            remedy="Set desktop.enabled = true, or skills.browser.headed = false.",
            related=("desktop.enabled",),
        )
