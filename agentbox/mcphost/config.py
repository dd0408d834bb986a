"""Configuration of mcp-host, from the plan in force. The API sends that of a newer plan."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Self

from agentbox.core.frozen import frozen
from agentbox.core.records.plain import build, to_plain
from agentbox.plan.model import Plan
from agentbox.plan.tables import McpPlan, McpServerPlan


@frozen
class McpConfig:
    """`agents` has the names in [agents] that each server is offered to; `locked` the pinned
    digests by `<server>/<tool>`.
    """

    mcp: McpPlan
    agents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    locked: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_plan(cls, plan: Plan) -> Self:
        """The part of a plan that mcp-host needs."""
        offers = {
            name: tuple(
                agent
                for agent, table in sorted(plan.agents.items())
                if table.enabled and name in table.mcp
            )
            for name in plan.mcp.servers
        }
        return cls(mcp=plan.mcp, agents=offers, locked=plan.digests.mcp)

    @property
    def servers(self) -> Mapping[str, McpServerPlan]:
        """The enabled rows, by name."""
        return {name: row for name, row in self.mcp.servers.items() if row.enabled}

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        data: dict[str, Any] = to_plain(self)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`. Raises ValueError."""
        config: Self = build(cls, data, "config")
        return config
