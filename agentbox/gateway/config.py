"""Configuration of the gateway, from the plan."""

from pathlib import Path
from typing import Self

from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.plan.names import GATEWAY
from agentbox.plan.network import gateway_port


@frozen
class GatewayConfig:
    """`plan` is the active plan; `port` is on 127.0.0.1."""

    paths: Paths
    plan: Plan
    port: int

    @property
    def state_dir(self) -> Path:
        """Directory of the persisted budgets."""
        return self.paths.slot(GATEWAY)

    @classmethod
    def from_plan(cls, plan: Plan, paths: Paths) -> Self:
        """The configuration of the box at these paths."""
        return cls(paths=paths, plan=plan, port=gateway_port(plan, in_container=paths.is_container))
