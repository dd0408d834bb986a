"""W206: a port that other machines can reach."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules._hosts import is_loopback
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "W206", "0.1"
TITLE = "port published beyond this machine"
REASON = """The box serves plain HTTP. On a loopback address only this machine can reach it; on any
other address tokens cross the network unencrypted."""
READS = ("api.publish_address", "observability.publish_address")
BAD = """
[api]
publish_address = "0.0.0.0"
"""
GOOD = """
[api]
publish_address = "127.0.0.1"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per address."""
    for key in ("api.publish_address", "observability.publish_address"):
        if not is_loopback(context[key]):
            yield context.finding(
                key,
                message=f"the port is published on {context[key]}: reachable from the network, "
                "without TLS",
                remedy=f'Set {key} = "127.0.0.1" and use a tunnel or a proxy that speaks TLS.',
            )
