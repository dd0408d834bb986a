"""E101: two other listeners on one port."""

import itertools
from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import PORT_KEYS, RuleContext
from agentbox.manifest.rules.ports._ports import port_conflict

CODE, SINCE = "E101", "0.1"
TITLE = "two listeners on one port"
REASON = """\
Two programs cannot listen on one port; the second would not start, and the box would not
become ready."""
READS = PORT_KEYS
BAD = """
[api]
port = 9093
"""
GOOD = """
[api]
port = 9090
"""


_REPORTED_ELSEWHERE = ("observability.metrics_port", "privacy.port", "sovereign_mesh.relay.port")


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per pair that E013, E025 and E028 do not report."""
    rows = [row for row in context.ports if row.owner not in _REPORTED_ELSEWHERE]
    for first, second in itertools.combinations(rows, 2):
        if first.port == second.port:
            yield port_conflict(context, first.owner, second.owner)
