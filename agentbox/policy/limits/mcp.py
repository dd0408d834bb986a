"""Limits of MCP servers and of their tools."""

from typing import Final

from agentbox.policy.limits.limit import Limit

QUESTIONS: Final = 8  # of one call of a server that may ask
WAITING_CALLS: Final = 8  # of one agent

MCP_LIMITS: Final = (
    Limit(
        name="mcp_servers",
        unit="processes",
        config_path="mcp.max_servers",
        enforced_by="mcp-host",
        consequence="a further server is not started",
        bound="exact",
    ),
    Limit(
        name="mcp_tools",
        unit="tools",
        config_path="mcp.max_tools",
        enforced_by="mcp-host",
        consequence="further tools are not offered",
        bound="exact",
    ),
    Limit(
        name="mcp_description",
        unit="bytes",
        config_path="mcp.description",
        enforced_by="mcp-host",
        consequence="the tool is not offered",
        bound="exact",
    ),
    Limit(
        name="mcp_call_seconds",
        unit="seconds",
        config_path="mcp.servers.<name>.call_seconds",
        enforced_by="mcp-host",
        consequence="the call is an error",
        bound="exact",
    ),
    Limit(
        name="mcp_max_result",
        unit="bytes",
        config_path="mcp.servers.<name>.max_result",
        enforced_by="mcp-host",
        consequence="the call is an error",
        bound="exact",
    ),
    Limit(
        name="mcp_questions",
        unit="requests",
        config_path="",
        fixed=QUESTIONS,
        enforced_by="mcp-host, of each call",
        consequence="a further question is refused",
        bound="exact",
    ),
    Limit(
        name="mcp_waiting_calls",
        unit="requests",
        config_path="",
        fixed=WAITING_CALLS,
        enforced_by="mcp-host, of calls that may ask",
        consequence="the call that waits longest for an answer is ended",
        bound="exact",
    ),
)
