"""E031: messages whose metadata anyone can read leave the box."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E031", "0.1"
TITLE = "NIP-04 messages leave the box"
REASON = """NIP-04 hides the text of a message, but not its sender, recipient and time. On a relay
outside of the box anyone can read these."""
READS = (
    "sovereign_mesh.relay.enabled",
    "sovereign_mesh.relay.allow_nip04",
    "sovereign_mesh.relay.expose",
    "sovereign_mesh.relay.external_fanout",
)
BAD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
allow_nip04 = true
expose = true
bind = "0.0.0.0"
"""
GOOD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
allow_nip04 = true
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if (
        not context["sovereign_mesh.relay.enabled"]
        or not context["sovereign_mesh.relay.allow_nip04"]
    ):
        return
    ways = {
        "expose": context["sovereign_mesh.relay.expose"],
        "external_fanout": context["sovereign_mesh.relay.external_fanout"],
    }
    open_ways = [
        f"sovereign_mesh.relay.{name}"
        for name, value in ways.items()
        if value not in (False, "off")
    ]
    if open_ways:
        yield context.finding(
            "sovereign_mesh.relay.allow_nip04",
            message=f"NIP-04 messages leave the box through {' and '.join(open_ways)}; "
            "anyone can read sender and recipient",
            remedy="Set sovereign_mesh.relay.allow_nip04 = false, or keep the relay local.",
            related=tuple(open_ways),
        )
