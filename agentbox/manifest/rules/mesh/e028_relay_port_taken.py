"""E028: another listener uses the port of the relay."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import PORT_KEYS, RuleContext
from agentbox.manifest.rules.ports._ports import other_listeners, port_conflict

CODE, SINCE = "E028", "0.1"
TITLE = "relay port taken"
REASON = """\
Two programs cannot listen on one port; the second would not start, and the box would not
become ready."""
READS = PORT_KEYS
BAD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
port = 9090
"""
GOOD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
port = 7777
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per listener with the same port; E013 reports the metrics port, E025 the privacy
    port.
    """
    key = "sovereign_mesh.relay.port"
    if any(row.owner == key for row in context.ports):
        excluding = (key, "observability.metrics_port", "privacy.port")
        yield from (
            port_conflict(context, key, row.owner)
            for row in other_listeners(context, context[key], excluding=excluding)
        )
