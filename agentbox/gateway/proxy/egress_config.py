"""`[egress]` and `limits.egress`, reloaded for the next connection when a manifest is applied."""

import structlog

from agentbox.box.supervision import applied_plan
from agentbox.box.supervision.boot_record import load_plan
from agentbox.core.errors import AgentboxError
from agentbox.gateway.config import GatewayConfig
from agentbox.plan.tables import EgressPlan, LimitsPlan
from agentbox.policy.outgoing import Outgoing
from agentbox.policy.patterns.hosts import HostPattern

log = structlog.get_logger()


class EgressConfig:
    """Reads the applied plan when it changes."""

    def __init__(self, config: GatewayConfig) -> None:
        self._paths = config.paths
        self.outgoing = Outgoing.read(config.paths)
        self._applied_mark = applied_plan.applied_version(self._paths)
        self._apply(config.plan.reach, config.plan.limits)

    def refresh(self) -> None:
        """Reloads the applied plan if it changed. A plan that cannot be read is logged once and
        ignored."""
        mark = applied_plan.applied_version(self._paths)
        if mark is None or mark == self._applied_mark:
            return
        self._applied_mark = mark
        try:
            plan = load_plan(self._paths.applied_plan)
        except AgentboxError as error:
            log.error("cannot apply the new plan", reason=error.message)
            return
        self._apply(plan.reach, plan.limits)

    def _apply(self, reach: EgressPlan, limits: LimitsPlan) -> None:
        self.allow = tuple(map(HostPattern.parse, reach.allow))
        self.allow_private = tuple(map(HostPattern.parse, reach.allow_private))
        self.connect_seconds = reach.connect_timeout_seconds
        self.max_connections = reach.max_connections
        self.bytes_per_day = limits.egress  # per 24 hours, for agents without a limit
