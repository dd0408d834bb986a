"""E012: a mesh client without an external slot."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.tables.slots import SLOTS

CODE, SINCE = "E012", "0.1"
TITLE = "client that shares nothing"
REASON = """A client registers with a host to use the host's slots. With every slot local or off the
registration has no effect."""
READS = (
    "mesh.mode",
    "adapters.beads.use",
    "adapters.pods.use",
    "adapters.memory.use",
    "adapters.events.use",
    "adapters.orchestrator.use",
)
BAD = """
[mesh]
mode = "client"
host_url = "https://mesh.example"
"""
GOOD = """
[mesh]
mode = "client"
host_url = "https://mesh.example"
[adapters]
beads.use = "external-http"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if context["mesh.mode"] == "client" and not any(
        context.slot_class(slot) == "external" for slot in SLOTS
    ):
        yield context.finding(
            "mesh.mode",
            message="the box is a mesh client and no slot is external: it would share nothing",
            remedy="Give a slot an external implementation, such as adapters.beads.use = "
            '"external-http", or go standalone.',
        )
