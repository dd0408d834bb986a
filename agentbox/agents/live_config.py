"""Live keys of agents, policies, providers and egress: taken over from the plan that was applied last."""

from dataclasses import replace

import structlog

from agentbox.agents.config import HostConfig
from agentbox.box.supervision.boot_record import load_plan
from agentbox.core.errors import AgentboxError

log = structlog.get_logger()


class LiveConfig:
    """Looks at the file of the applied plan whenever an agent is asked for; reads it when it is another one."""

    def __init__(self) -> None:
        self._applied: tuple[int, int] | None = None

    def apply(self, config: HostConfig) -> HostConfig:
        """The same with what was applied since. Agents that run keep what they were started with. A file that cannot be
        read changes nothing."""
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
            log.error("applied plan is not taken over", reason=error.message)
            return config
        return replace(
            config,
            agents=plan.agents,
            policies=plan.policies,
            providers=plan.providers,
            egress=plan.reach,
        )
