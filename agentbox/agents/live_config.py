"""Live keys of agents, policies, providers, sandboxes and egress, from the plan applied last."""

from dataclasses import replace

import structlog

from agentbox.agents.admission.services import server_policies
from agentbox.agents.config import HostConfig
from agentbox.box.supervision.boot_record import load_plan
from agentbox.core.errors import AgentboxError

log = structlog.get_logger()


class LiveConfig:
    """Checks the applied plan at each request for an agent; reads it if it has changed."""

    def __init__(self) -> None:
        self._applied: tuple[int, int] | None = None

    def apply(self, config: HostConfig) -> HostConfig:
        """Return the configuration with the applied plan. Running agents keep theirs. An unreadable
        file changes nothing."""
        path = config.paths.applied_plan
        try:
            stats = path.stat()
        except FileNotFoundError:
            return config
        if (identity := (stats.st_ino, stats.st_mtime_ns)) == self._applied:
            return config
        self._applied = identity
        try:
            plan = load_plan(path)
        except AgentboxError as error:
            log.error("cannot load the applied plan", reason=error.message)
            return config
        return replace(
            config,
            agents=plan.agents,
            mcp_servers=plan.mcp.servers,
            policies={**plan.policies, **server_policies(plan.mcp.servers)},
            providers=plan.providers,
            sandboxes=plan.sandboxes,
            acp=plan.acp,
            egress_allow=plan.reach.allow,
        )
