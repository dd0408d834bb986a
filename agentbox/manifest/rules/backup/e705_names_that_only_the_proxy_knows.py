"""E705: the proxy looks up names, and a pattern would allow more than exact names."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.policy.patterns.hosts import HostPattern

CODE, SINCE = "E705", "0.1"
TITLE = "names that only the proxy looks up, by a pattern"
REASON = """\
With resolve = "proxy" the box cannot tell whether a name leads to a private address. So it lets
agents reach exact names of egress.allow only: no wildcards, no addresses. Without a proxy nobody
would look names up."""
READS = ("network.resolve", "network.proxy", "egress.allow")
BAD = """
[network]
proxy = "http://proxy.example:3128"
resolve = "proxy"
[egress]
allow = ["*.example.com"]
"""
GOOD = """
[network]
proxy = "http://proxy.example:3128"
resolve = "proxy"
[egress]
allow = ["api.example.com"]
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if context["network.resolve"] != "proxy":
        return
    if not context["network.proxy"]:
        yield context.finding(
            "network.resolve",
            message='network.resolve is "proxy", and there is no proxy',
            remedy='Set network.proxy, or network.resolve = "local".',
            related=("network.proxy",),
        )
    elif wide := [text for text in context["egress.allow"] if not _is_exact(text)]:
        yield context.finding(
            "egress.allow",
            message=f'{", ".join(wide)} is no exact name, and network.resolve is "proxy"',
            remedy='List each name, or set network.resolve = "local".',
            related=("network.resolve",),
        )


def _is_exact(text: str) -> bool:
    pattern = HostPattern.parse(text)
    return pattern.network is None and not pattern.name.startswith("*")
