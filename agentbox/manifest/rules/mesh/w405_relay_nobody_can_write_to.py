"""W405: an allowlist without a key."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "W405", "0.1"
TITLE = "relay nobody can write to"
REASON = """\
The box itself can always write. With an empty allowlist nobody else can, which is rarely
intended."""
READS = (
    "sovereign_mesh.relay.enabled",
    "sovereign_mesh.relay.ingress_policy",
    "sovereign_mesh.relay.allowed_pubkeys",
    "sovereign_mesh.operator.pubkey",
)
BAD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
"""
GOOD = """
[sovereign_mesh]
enabled = true
operator.pubkey = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
[sovereign_mesh.relay]
enabled = true
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if (
        not context["sovereign_mesh.relay.enabled"]
        or context["sovereign_mesh.relay.ingress_policy"] != "allowlist"
    ):
        return
    if (
        not context["sovereign_mesh.relay.allowed_pubkeys"]
        and not context["sovereign_mesh.operator.pubkey"]
    ):
        yield context.finding(
            "sovereign_mesh.relay.ingress_policy",
            message="only the box itself may write to the relay: its allowlist is empty and no "
            "operator's key is set",
            remedy="Add keys to sovereign_mesh.relay.allowed_pubkeys, or set "
            "sovereign_mesh.operator.pubkey.",
        )
