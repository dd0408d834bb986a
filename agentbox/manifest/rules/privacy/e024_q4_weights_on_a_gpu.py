"""E024: weights that run on a CPU only."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E024", "0.1"
TITLE = "q4 weights on a GPU"
REASON = "No GPU kernel reads q4 weights; the model program would not load them."
READS = ("privacy.enabled", "privacy.dtype", "privacy.mode")
BAD = """
[privacy]
mode = "local-gpu"
dtype = "q4"
"""
GOOD = """
[privacy]
mode = "local-cpu"
dtype = "q4"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if (
        context["privacy.enabled"]
        and context["privacy.dtype"] == "q4"
        and context["privacy.mode"] == "local-gpu"
    ):
        yield context.finding(
            "privacy.dtype",
            message="q4 weights run on the CPU only, and privacy.mode is local-gpu",
            remedy='Set privacy.dtype = "bf16", or privacy.mode = "local-cpu".',
            related=("privacy.mode",),
        )
