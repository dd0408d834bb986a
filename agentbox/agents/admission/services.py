"""MCP servers as agents: what a row of `[mcp.servers]` gives the sandbox of its program. Only
mcp-host starts them, and only as the row says."""

from collections.abc import Mapping
from typing import Final

from agentbox.manifest.tables.agents import ModelBudgetTable, RestartTable
from agentbox.plan.tables import AgentPlan, McpServerPlan, ModelBudgetPlan, RestartPlan

PREFIX: Final = "mcp."
"""In the name of its definition, which therefore is no name of [agents]."""


def server_definition(name: str, servers: Mapping[str, McpServerPlan]) -> AgentPlan | None:
    """The definition `mcp.<server>`; None for another name, and for a row that is off. It has no
    model, no children and no tools."""
    row = servers.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if row is None or row.transport != "stdio":
        return None
    return AgentPlan(
        enabled=row.enabled,
        autostart=False,
        max_instances=1_000_000,  # mcp.max_servers bounds them
        command=row.command,
        args=row.args,
        protocol="oneshot",
        preset="",
        profile=row.profile,
        provider="",
        env=row.env,
        secrets=row.secrets,
        state="run",
        workspace="branch",
        workspace_dir="/workspace",
        children=(),
        skills=(),
        mcp=(),
        approval_required=(),
        limits=row.limits,
        llm=ModelBudgetPlan(**vars(ModelBudgetTable())),
        restart=RestartPlan(**vars(RestartTable())),
    )
