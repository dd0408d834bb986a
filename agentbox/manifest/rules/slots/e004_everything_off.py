"""E004: all five slots are off without a declared mesh mode."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.tables.slots import SLOTS

CODE, SINCE = "E004", "0.1"
TITLE = "everything off, not declared"
REASON = """A box with all slots off stores nothing and starts nothing. That is valid for tests, but
usually an accident; setting the mesh mode confirms it."""
READS = (
    "adapters.beads.use",
    "adapters.pods.use",
    "adapters.memory.use",
    "adapters.events.use",
    "adapters.orchestrator.use",
    "mesh.mode",
)
BAD = """
[adapters]
beads.use = "off"
pods.use = "off"
memory.use = "off"
events.use = "off"
orchestrator.use = "off"
"""
GOOD = """
[mesh]
mode = "standalone"
[adapters]
beads.use = "off"
pods.use = "off"
memory.use = "off"
events.use = "off"
orchestrator.use = "off"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if any(context[f"adapters.{slot}.use"] != "off" for slot in SLOTS):
        return
    if not (context.is_written("mesh.mode") and context["mesh.mode"] == "standalone"):
        yield context.finding(
            "adapters",
            message="all five slots are off: the box stores nothing and starts nothing",
            remedy='Write mesh.mode = "standalone" if that is intended, or give a slot an '
            "implementation.",
        )
