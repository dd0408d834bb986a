"""E013: another listener uses the metrics port."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import PORT_KEYS, RuleContext
from agentbox.manifest.rules.ports._ports import other_listeners, port_conflict

CODE, SINCE = "E013", "0.1"
TITLE = "metrics port taken"
REASON = """\
Two programs cannot listen on one port; the second would not start, and the box would not
become ready."""
READS = PORT_KEYS
BAD = """
[observability]
metrics_port = 9090
"""
GOOD = """
[observability]
metrics_port = 9191
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per listener with the same port."""
    key = "observability.metrics_port"
    yield from (
        port_conflict(context, key, row.owner)
        for row in other_listeners(context, context[key], excluding=(key,))
    )
