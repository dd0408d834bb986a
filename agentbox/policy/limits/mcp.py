"""Limits of MCP servers and of their tools."""

from typing import Final

from agentbox.policy.limits.limit import Limit

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
)
