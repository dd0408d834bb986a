"""E026: a relay in a box without an identity."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E026", "0.1"
TITLE = "relay without the sovereign mesh"
REASON = """\
A relay signs and admits events with the key pair of its box, which only the sovereign mesh
creates."""
READS = ("sovereign_mesh.relay.enabled", "sovereign_mesh.enabled")
BAD = """
[sovereign_mesh.relay]
enabled = true
"""
GOOD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if context["sovereign_mesh.relay.enabled"] and not context["sovereign_mesh.enabled"]:
        yield context.finding(
            "sovereign_mesh.relay.enabled",
            message="a relay needs the identity of the box, and sovereign_mesh.enabled is false",
            remedy="Set sovereign_mesh.enabled = true, or sovereign_mesh.relay.enabled = false.",
            related=("sovereign_mesh.enabled",),
        )
