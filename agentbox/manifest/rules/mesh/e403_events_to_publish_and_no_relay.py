"""E403: events are to be published without a relay."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E403", "0.1"
TITLE = "events to publish, no relay"
REASON = (
    "With events to publish, `/ready` waits for a relay. Without any it would never return 200."
)
READS = (
    "sovereign_mesh.enabled",
    "sovereign_mesh.publish_agent_events",
    "sovereign_mesh.relays",
    "sovereign_mesh.relay.enabled",
)
BAD = """
[sovereign_mesh]
enabled = true
publish_agent_events = true
"""
GOOD = """
[sovereign_mesh]
enabled = true
publish_agent_events = true
relays = ["wss://relay.example"]
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if not context["sovereign_mesh.enabled"] or not context["sovereign_mesh.publish_agent_events"]:
        return
    if not context["sovereign_mesh.relays"] and not context["sovereign_mesh.relay.enabled"]:
        yield context.finding(
            "sovereign_mesh.publish_agent_events",
            message="events are to be published without a relay: `/ready` would never return 200",
            remedy='Add a relay: sovereign_mesh.relays = ["wss://<the relay>"], or '
            "sovereign_mesh.relay.enabled = true.",
        )
