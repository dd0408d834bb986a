"""E313: a header of an MCP server that the box cannot send, or should not."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from agentbox.manifest.declarations.key_path import quoted
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E313", "0.1"
TITLE = "MCP server header that cannot be sent"
REASON = """\
Headers of the connection, of the protocol and of the proxy are set by the box: another value would
make two readers of one request disagree, or speak for somebody else. A credential is a secret; only
its name stands in the manifest."""
READS = (
    "mcp.servers",
    "mcp.servers.*.enabled",
    "mcp.servers.*.transport",
    "mcp.servers.*.auth",
    "mcp.servers.*.headers",
    "mcp.servers.*.headers.*.value",
    "mcp.servers.*.headers.*.env_var",
)
BAD = """
[mcp.servers.search]
transport = "http"
url = "https://mcp.example.com/mcp"
[mcp.servers.search.headers.Host]
value = "other.example.com"
"""
GOOD = """
[mcp.servers.search]
transport = "http"
url = "https://mcp.example.com/mcp"
[mcp.servers.search.headers.X-Region]
value = "eu-west"
"""
EACH = "mcp.servers"

_RESERVED: Final = re.compile(
    "(accept|accept-encoding|connection|content-.*|date|expect|forwarded|host|keep-alive"
    "|last-event-id|mcp-.*|origin|proxy-.*|referer|te|trailer|transfer-encoding|upgrade|via"
    "|x-forwarded-.*|x-http-method.*|x-method-override)",
    re.IGNORECASE,
)
_CREDENTIAL: Final = re.compile(
    ".*(auth|cookie|credential|key|password|secret|token)", re.IGNORECASE
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per header."""
    if not context["mcp.servers.*.enabled"] or context["mcp.servers.*.transport"] != "http":
        return
    names = context.names("mcp.servers.*.headers")
    spellings = Counter(name.lower() for name in names)
    for name in names:
        key = f"mcp.servers.*.headers.{quoted(name)}"
        value, env_var = context[f"{key}.value"], context[f"{key}.env_var"]
        if spellings[name.lower()] > 1:
            problem, remedy = f"{name} is there twice", "Remove one spelling of it."
        elif _RESERVED.fullmatch(name):
            problem, remedy = f"{name} is set by the box", "Remove it."
        elif name.lower() == "authorization" and context["mcp.servers.*.auth"] == "bearer":
            problem, remedy = f'{name} is set by auth = "bearer"', "Remove one of the two."
        elif bool(value) == bool(env_var):
            problem, remedy = f"{name} has not exactly one value", "Set value, or env_var."
        elif value and _CREDENTIAL.match(name):
            problem, remedy = (
                f"{name} has its value in the manifest, and looks like a credential",
                "Set env_var to the name of a secret that is the value.",
            )
        else:
            continue
        yield context.finding(key, message=f"{context.entry}: the header {problem}", remedy=remedy)
