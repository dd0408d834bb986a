"""E402: events of others are forwarded in this box's name."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E402", "0.1"
TITLE = "open relay that federates both ways"
REASON = """\
Events that anyone writes to an open relay would be forwarded to the other relays in this
box's name."""
READS = (
    "sovereign_mesh.relay.enabled",
    "sovereign_mesh.relay.ingress_policy",
    "sovereign_mesh.relay.external_fanout",
)
BAD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
ingress_policy = "open"
external_fanout = "bidirectional"
"""
GOOD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
ingress_policy = "open"
external_fanout = "publish-only"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if (
        not context["sovereign_mesh.relay.enabled"]
        or context["sovereign_mesh.relay.ingress_policy"] != "open"
    ):
        return
    if context["sovereign_mesh.relay.external_fanout"] == "bidirectional":
        yield context.finding(
            "sovereign_mesh.relay.external_fanout",
            message="the relay is open and federates both ways: events of others would be "
            "forwarded in this box's name",
            remedy='Set sovereign_mesh.relay.ingress_policy = "allowlist", or external_fanout = '
            '"publish-only".',
            related=("sovereign_mesh.relay.ingress_policy",),
        )
