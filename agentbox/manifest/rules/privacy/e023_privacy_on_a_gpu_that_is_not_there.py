"""E023: the privacy model without a GPU."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E023", "0.1"
TITLE = "privacy on a GPU that is not there"
REASON = """The model would find no device, the filter would be down, and strict slots would reject
every write."""
READS = ("privacy.enabled", "privacy.mode", "gpu.backend")
BAD = """
[privacy]
mode = "local-gpu"
"""
GOOD = """
[privacy]
mode = "local-gpu"
[gpu]
backend = "local-cuda"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if (
        context["privacy.enabled"]
        and context["privacy.mode"] == "local-gpu"
        and context["gpu.backend"] == "none"
    ):
        yield context.finding(
            "privacy.mode",
            message='privacy.mode is "local-gpu" and gpu.backend is "none"',
            remedy='Set gpu.backend, or privacy.mode = "local-cpu" or "rules".',
            related=("gpu.backend",),
        )
