"""Names of tools of MCP servers in the scope `tool`: `mcp/<server>/<tool>`."""

from collections.abc import Iterable


def server_patterns(servers: Iterable[str]) -> tuple[str, ...]:
    """The patterns of all tools of these servers: the value of `$MCP`."""
    return tuple(f"mcp/{server}/*" for server in servers)


def tool_right(server: str, tool: str) -> str:
    """The name that a right of one tool has."""
    return f"mcp/{server}/{tool}"
