"""Live keys of agents, policies, providers and egress: taken over from the plan that was applied last."""

from dataclasses import replace

import structlog

from agentbox.agents.config import HostConfig
from agentbox.box.supervision.boot_record import load_plan
from agentbox.core.errors import AgentboxError

log = structlog.get_logger()


class Live:
    """Looks at the file of the applied plan whenever an agent is asked for; reads it when it is another one."""

    def __init__(self) -> None:
        self._seen: tuple[int, int] | None = None

    def taken_over(self, config: HostConfig) -> HostConfig:
        """The same with what was applied since. Agents that run keep what they were started with. A file that cannot be
        read changes nothing."""
        path = config.paths.applied_plan
        try:
            found = path.stat()
        except FileNotFoundError:
            return config
        if (seen := (found.st_ino, found.st_mtime_ns)) == self._seen:
            return config
        self._seen = seen
        try:
            plan = load_plan(path)
        except AgentboxError as error:
            log.error("applied plan is not taken over", reason=error.message)
            return config
        return replace(config, agents=plan.agents, policies=plan.policies, providers=plan.providers, reach=plan.reach)
