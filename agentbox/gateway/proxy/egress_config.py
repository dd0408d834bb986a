"""`[egress]` and `limits.egress` as they are in force now: live, so an applied manifest holds for the next connection."""

from collections.abc import Mapping
from typing import Any

import structlog

from agentbox.box.supervision import applied_plan
from agentbox.box.supervision.boot_record import load_plan
from agentbox.core.errors import AgentboxError
from agentbox.gateway.config import GatewayConfig
from agentbox.policy.patterns.hosts import HostPattern

_GIB = 1 << 30
log = structlog.get_logger()


class EgressConfig:
    """Looks whether another plan was applied, and reads it then."""

    def __init__(self, config: GatewayConfig) -> None:
        self._paths = config.paths
        self._applied_mark = applied_plan.applied_version(self._paths)
        self._apply(config.plan.reach, config.plan.limits)

    def refresh(self) -> None:
        """Takes over what was applied since; of a plan that cannot be read nothing, and the log says so once."""
        mark = applied_plan.applied_version(self._paths)
        if mark is None or mark == self._applied_mark:
            return
        self._applied_mark = mark
        try:
            plan = load_plan(self._paths.applied_plan)
        except AgentboxError as error:
            log.error("the applied plan is not taken over", reason=error.message)
            return
        self._apply(plan.reach, plan.limits)

    def _apply(self, table: Mapping[str, Any], limits: Mapping[str, Any]) -> None:
        self.allow_private = tuple(
            HostPattern.parse(text) for text in table.get("allow_private", ())
        )
        self.connect_seconds = float(table.get("connect_timeout_seconds", 10))
        self.max_connections = int(table.get("max_connections", 64))
        self.bytes_per_day = int(
            limits.get("egress", _GIB)
        )  # in 24 hours, of an agent without a limit of its own
