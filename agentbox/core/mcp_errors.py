"""Errors of calls of MCP servers."""

from agentbox.core.adapter_error import AdapterError


class McpUnavailable(AdapterError):
    """The server cannot be started or reached, or ended during the call."""

    code, status, retryable, names = "mcp-unavailable", 503, True, ("server",)


class McpDrift(AdapterError):
    """The tool is not pinned, or its live definition differs from the pinned one."""

    code, status, names = "mcp-drift", 409, ("server", "tool")


class McpTimeout(AdapterError):
    """The server did not answer within `call_seconds`."""

    code, status, names = "mcp-timeout", 504, ("server", "tool")


class McpResult(AdapterError):
    """The result is too large, is none, or is not what the pinned output schema says."""

    code, status, names = "mcp-result", 502, ("server", "tool")
