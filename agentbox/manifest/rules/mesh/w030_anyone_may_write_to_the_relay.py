"""W030: an open relay."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "W030", "0.1"
TITLE = "anyone may write to the relay"
REASON = """\
Anyone who can reach an open relay can fill its disk, and the relay serves their events in
this box's name."""
READS = ("sovereign_mesh.relay.enabled", "sovereign_mesh.relay.ingress_policy")
BAD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
ingress_policy = "open"
"""
GOOD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
ingress_policy = "signed-only"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if (
        context["sovereign_mesh.relay.enabled"]
        and context["sovereign_mesh.relay.ingress_policy"] == "open"
    ):
        yield context.finding(
            "sovereign_mesh.relay.ingress_policy",
            message="anyone may write to the relay",
            remedy='Set sovereign_mesh.relay.ingress_policy = "allowlist" or "signed-only".',
        )
