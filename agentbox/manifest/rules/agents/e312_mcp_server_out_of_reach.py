"""E312: an MCP server over HTTP whose host no agent may reach."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import is_pattern
from agentbox.manifest.rules.context import RuleContext
from agentbox.policy.patterns.hosts import HostPattern, url_target

CODE, SINCE = "E312", "0.1"
TITLE = "MCP server out of reach"
REASON = """\
A server over HTTP is called through the proxy, under a right of its own to its host alone. That
right is within `egress.allow`, as every other."""
READS = (
    "mcp.servers",
    "mcp.servers.*.enabled",
    "mcp.servers.*.transport",
    "mcp.servers.*.url",
    "egress.allow",
)
BAD = """
[mcp.servers.search]
transport = "http"
url = "https://mcp.example.com/mcp"
"""
GOOD = """
[mcp.servers.search]
transport = "http"
url = "https://mcp.example.com/mcp"
[egress]
allow = ["mcp.example.com:443"]
"""
EACH = "mcp.servers"


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per server."""
    if not context["mcp.servers.*.enabled"] or context["mcp.servers.*.transport"] != "http":
        return
    if not (url := context["mcp.servers.*.url"]):
        return  # reported by E311
    target = url_target(url)
    allowed = [text for text in context["egress.allow"] if is_pattern("net", text)]
    if is_pattern("net", target) and any(
        HostPattern.parse(text).covers(HostPattern.parse(target)) for text in allowed
    ):
        return
    yield context.finding(
        "mcp.servers.*.url",
        message=f"{context.entry} is at {target}, which egress.allow does not have",
        remedy=f'Add "{target}" to egress.allow.',
        related=("egress.allow",),
    )
