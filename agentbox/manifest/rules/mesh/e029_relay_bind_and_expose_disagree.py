"""E029: the relay listens on all addresses without being published, or is published on loopback."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules._hosts import is_loopback, is_wildcard
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E029", "0.1"
TITLE = "relay bind and expose disagree"
REASON = """\
A listener on all addresses that is not published cannot be reached from outside; neither
can a published one on loopback."""
READS = (
    "sovereign_mesh.relay.enabled",
    "sovereign_mesh.relay.implementation",
    "sovereign_mesh.relay.bind",
    "sovereign_mesh.relay.expose",
)
BAD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
bind = "0.0.0.0"
"""
GOOD = """
[sovereign_mesh]
enabled = true
[sovereign_mesh.relay]
enabled = true
bind = "0.0.0.0"
expose = true
"""
_TABLE = "sovereign_mesh.relay"


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if not context[f"{_TABLE}.enabled"] or context[f"{_TABLE}.implementation"] != "embedded":
        return
    bind, expose = context[f"{_TABLE}.bind"], context[f"{_TABLE}.expose"]
    if is_wildcard(bind) and not expose:
        yield context.finding(
            f"{_TABLE}.bind",
            message=f"the relay listens on {bind} and is not published: nothing can reach it",
            remedy=f'Set {_TABLE}.bind = "127.0.0.1", or {_TABLE}.expose = true.',
            related=(f"{_TABLE}.expose",),
        )
    if expose and is_loopback(bind):
        yield context.finding(
            f"{_TABLE}.expose",
            message=f"the relay is published and listens on {bind} only: it cannot be reached",
            remedy=f'Set {_TABLE}.bind = "0.0.0.0", or {_TABLE}.expose = false.',
            related=(f"{_TABLE}.bind",),
        )
