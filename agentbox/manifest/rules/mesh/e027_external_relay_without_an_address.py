"""E027: an external relay without an address."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E027", "0.1"
TITLE = "external relay without an address"
REASON = """\
An external relay is found by its own address or through the mesh host; without either no
event is stored."""
READS = (
    "sovereign_mesh.relay.enabled",
    "sovereign_mesh.relay.implementation",
    "sovereign_mesh.relay.url",
    "mesh.mode",
)
BAD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
implementation = "external"
"""
GOOD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
implementation = "external"
url = "wss://relay.example"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if (
        not context["sovereign_mesh.relay.enabled"]
        or context["sovereign_mesh.relay.implementation"] != "external"
    ):
        return
    if not context["sovereign_mesh.relay.url"] and context["mesh.mode"] != "client":
        yield context.finding(
            "sovereign_mesh.relay.implementation",
            message="the relay is external and has no address",
            remedy='Set sovereign_mesh.relay.url = "wss://<the relay>".',
            related=("mesh.mode",),
        )
