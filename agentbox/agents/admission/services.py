"""MCP servers as agents: what a row of `[mcp.servers]` gives the sandbox of its program. Only
mcp-host starts them, and only as the row says."""

from collections.abc import Mapping
from typing import Final

from agentbox.manifest.tables.acp import AgentAcpTable
from agentbox.manifest.tables.agents import ModelBudgetTable, RestartTable
from agentbox.plan.tables import (
    AgentAcpPlan,
    AgentPlan,
    McpServerPlan,
    ModelBudgetPlan,
    NetRulePlan,
    PolicyPlan,
    RestartPlan,
)
from agentbox.policy.patterns.hosts import url_target

PREFIX: Final = "mcp."
"""Prefix of the name of its definition. Names of [agents] have no dot, so none is equal."""


def server_definition(name: str, servers: Mapping[str, McpServerPlan]) -> AgentPlan | None:
    """The definition `mcp.<server>`; None for another name, and for a row that is off. It has no
    model, no children and no tools."""
    row = servers.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if row is None:
        return None
    is_http = row.transport == "http"
    credential = (row.env_var,) if is_http and row.auth == "bearer" else ()
    return AgentPlan(
        enabled=row.enabled,
        autostart=False,
        max_instances=1_000_000,  # mcp.max_servers bounds them
        command=row.command,
        args=row.args,
        protocol="oneshot",
        preset="",
        profile=name if is_http else row.profile,
        provider="",
        env=row.env,
        secrets=credential if is_http else row.secrets,
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
        acp=AgentAcpPlan(**{**vars(AgentAcpTable()), "max_transcript": 0}),  # no sessions
    )


def server_policies(servers: Mapping[str, McpServerPlan]) -> dict[str, PolicyPlan]:
    """The policies of http servers, by the names of their definitions: the profile `service`, and
    the host of the row as far as `egress.allow` has it."""
    return {
        f"{PREFIX}{name}": _policy(row)
        for name, row in servers.items()
        if row.transport == "http" and row.url
    }


def _policy(row: McpServerPlan) -> PolicyPlan:
    target = url_target(row.url)
    rule = NetRulePlan(
        mode="allow", operations=("connect",), patterns=(target,), methods=(), paths=()
    )
    return PolicyPlan(
        base="service", fs=(), net=(rule,), exec=(), env=(), tool=(), llm=(), agent=()
    )
