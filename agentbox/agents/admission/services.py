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
    RulePlan,
)
from agentbox.policy.patterns.hosts import url_target

PREFIX: Final = "mcp."
"""Prefix of the name of its definition. Names of [agents] have no dot, so none is equal."""

_WORKSPACE: Final = "$WORKSPACE/**"


def server_definition(name: str, servers: Mapping[str, McpServerPlan]) -> AgentPlan | None:
    """The definition `mcp.<server>`; None for another name, and for a row that is off. It has no
    model, no children and no tools."""
    row = servers.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if row is None:
        return None
    is_http = row.transport == "http"
    return AgentPlan(
        enabled=row.enabled,
        autostart=False,
        max_instances=1_000_000,  # mcp.max_servers bounds them
        command=row.command,
        args=row.args,
        protocol="oneshot",
        preset="",
        profile=name if is_http or sees_branch(row) else row.profile,
        provider="",
        env=row.env,
        secrets=_http_secrets(row) if is_http else row.secrets,
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


def _http_secrets(row: McpServerPlan) -> tuple[str, ...]:
    """The names of those that are sent to it."""
    token = row.env_var if row.auth == "bearer" else ""
    names = (token, *(header.env_var for header in row.headers.values()))
    return tuple(sorted({name for name in names if name}))


def sees_branch(row: McpServerPlan) -> bool:
    """Whether the branch of the agent that it serves is its workspace."""
    return row.transport == "stdio" and row.instance == "agent" and row.workspace != "none"


def server_policies(servers: Mapping[str, McpServerPlan]) -> dict[str, PolicyPlan]:
    """Policies by the names of the definitions. For an http server the profile `service`, and the
    host of the row as far as `egress.allow` has it; for one that sees a branch the profile of the
    row, and exactly that access to it."""
    http = {name: row for name, row in servers.items() if row.transport == "http" and row.url}
    branch = {name: row for name, row in servers.items() if sees_branch(row)}
    return {
        **{f"{PREFIX}{name}": _http_policy(row) for name, row in http.items()},
        **{f"{PREFIX}{name}": _branch_policy(row) for name, row in branch.items()},
    }


def _branch_policy(row: McpServerPlan) -> PolicyPlan:
    write = RulePlan(
        mode="allow" if row.workspace == "branch" else "deny",
        operations=("write",),
        patterns=(_WORKSPACE,),
    )
    read = RulePlan(mode="allow", operations=("read",), patterns=(_WORKSPACE,))
    return PolicyPlan(
        base=row.profile, fs=(read, write), net=(), exec=(), env=(), tool=(), llm=(), agent=()
    )


def _http_policy(row: McpServerPlan) -> PolicyPlan:
    target = url_target(row.url)
    rule = NetRulePlan(
        mode="allow", operations=("connect",), patterns=(target,), methods=(), paths=()
    )
    return PolicyPlan(
        base="service", fs=(), net=(rule,), exec=(), env=(), tool=(), llm=(), agent=()
    )
