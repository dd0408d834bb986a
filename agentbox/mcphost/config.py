"""Configuration of mcp-host, from the plan in force."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.plan.names import MCP_HOST
from agentbox.plan.tables import McpServerPlan


@dataclass(frozen=True, kw_only=True)
class McpConfig:
    """`servers` are the enabled rows; `agents` has the names in [agents] that each is offered to;
    `locked` the pinned digests by `<server>/<tool>`.
    """

    paths: Paths
    servers: Mapping[str, McpServerPlan]
    agents: Mapping[str, tuple[str, ...]]
    locked: Mapping[str, str]
    max_servers: int
    max_tools: int
    max_description: int
    log_level: str

    @classmethod
    def from_plan(cls, plan: Plan, paths: Paths) -> Self:
        """The configuration of the box at these paths."""
        servers = {name: row for name, row in plan.mcp.servers.items() if row.enabled}
        return cls(
            paths=paths,
            servers=servers,
            agents={
                name: tuple(
                    agent
                    for agent, table in sorted(plan.agents.items())
                    if table.enabled and name in table.mcp
                )
                for name in servers
            },
            locked=plan.digests.mcp,
            max_servers=plan.mcp.max_servers,
            max_tools=plan.mcp.max_tools,
            max_description=plan.mcp.description,
            log_level=plan.observability.log_level,
        )

    @property
    def directory(self) -> Path:
        """Its state: first-use pins, known definitions, events that wait for the journal."""
        return self.paths.slot(MCP_HOST)
