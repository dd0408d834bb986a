"""What the plan in force says about sessions: its keys are live."""

import structlog

from agentbox.box.supervision.applied_plan import applied_version, plan_in_force
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.plan.tables import AgentPlan
from agentbox.sessions.environment import SessionAgent, SessionsConfig

_log = structlog.get_logger()


def sessions_config(plan: Plan, paths: Paths) -> SessionsConfig:
    """Agents that speak ACP, with their commands, and the bounds."""
    agents = {
        name: SessionAgent(name=name, command=_command(agent), auth=agent.acp.auth, acp=agent.acp)
        for name, agent in plan.agents.items()
        if agent.protocol == "acp" and agent.enabled
    }
    return SessionsConfig(acp=plan.acp, agents=agents, branches=paths.branches)


class LiveConfig:
    """Reads the applied plan again when there is a new one; an unreadable one changes nothing."""

    def __init__(self, booted: Plan, paths: Paths) -> None:
        self._booted, self._paths = booted, paths
        self._version: tuple[int, int, int] | None = None
        self._config = sessions_config(booted, paths)

    def __call__(self) -> SessionsConfig:
        """The values in force."""
        version = applied_version(self._paths)
        if version != self._version:
            self._version = version
            try:
                self._config = sessions_config(
                    plan_in_force(self._paths, self._booted), self._paths
                )
            except AgentboxError as error:
                _log.error("cannot load the applied plan", reason=error.message)
        return self._config


def _command(agent: AgentPlan) -> tuple[str, ...]:
    """Its own, else the one of its preset that speaks ACP."""
    if agent.command or not agent.preset:
        return (*agent.command, *agent.args)
    from agentbox.manifest.features.presets import presets  # a box without presets reads none

    return (*presets()[agent.preset].acp_command, *agent.args)
