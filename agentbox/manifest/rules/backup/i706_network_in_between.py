"""I706: others see what leaves the box: a proxy, or an authority of the operator."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "I706", "0.1"
TITLE = "a proxy or an authority of your own"
REASON = """\
Who runs the proxy sees where the box connects to. Who has the key of a trusted authority can read
and change everything that the box and its agents send over TLS, keys of models among it."""
READS = ("network.proxy", "network.ca_bundle")
BAD = """
[network]
ca_bundle = "/etc/ssl/corp.pem"
"""
GOOD = ""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, at the first written key."""
    texts = {
        "network.ca_bundle": f"{context['network.ca_bundle']} is trusted for every server",
        "network.proxy": f"everything leaves through {context['network.proxy']}",
    }
    if keys := [key for key in texts if context[key]]:
        yield context.finding(
            keys[0],
            message=" and ".join(texts[key] for key in keys),
            remedy="No action is needed if that is intended.",
            related=tuple(keys[1:]),
        )
