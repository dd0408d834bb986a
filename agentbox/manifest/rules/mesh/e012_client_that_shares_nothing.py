"""E012: a mesh client none of whose slots is external."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.tables.slots import SLOTS

CODE, SINCE = "E012", "0.1"
TITLE = "client that shares nothing"
WHY = """A client registers with a host in order to use what the host offers. With every slot local or off it would
register and keep everything to itself."""
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
            message="the box is a mesh client and no slot is external: it would keep everything to itself",
            remedy='Give a slot an external implementation, such as adapters.beads.use = "external-http", or go standalone.',
        )
