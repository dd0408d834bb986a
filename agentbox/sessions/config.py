"""What the manifest says about sessions, as agent-host has it now: session-host reads no plan."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import structlog

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.records.plain import build
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.plan.tables import AcpPlan, AgentAcpPlan
from agentbox.sessions.environment import SessionAgent, SessionsConfig

_FRESH_SECONDS: Final = 1.0
_log = structlog.get_logger()


class LiveConfig:
    """Its keys are live: call `refresh` before what depends on them. `branches`: the directory of
    all branches."""

    def __init__(self, host: AgentHost, branches: Path) -> None:
        self._host, self._branches = host, branches
        self._config: SessionsConfig | None = None
        self._read_at = 0.0
        self.log_level = "info"

    def __call__(self) -> SessionsConfig:
        """As it was read last. `load` has returned."""
        assert self._config is not None
        return self._config

    async def load(self) -> None:
        """Raises slot errors."""
        told: Mapping[str, Any] = await self._host.read_session_config()
        self.log_level = str(told["log_level"])
        self._config = SessionsConfig(
            acp=build(AcpPlan, told["acp"], "acp"),
            agents={name: _agent(name, row) for name, row in told["agents"].items()},
            branches=self._branches,
        )
        self._read_at = time.monotonic()

    async def refresh(self) -> None:
        """Reads it, unless it was read within the last second. While agent-host starts again, what
        it said last is in force."""
        if time.monotonic() - self._read_at < _FRESH_SECONDS:
            return
        try:
            await self.load()
        except SlotUnavailable as error:
            _log.info("configuration not read", reason=error.message)


def _agent(name: str, row: Mapping[str, Any]) -> SessionAgent:
    acp = build(AgentAcpPlan, row["acp"], name)
    return SessionAgent(
        name=name,
        command=tuple(row["command"]),
        auth=acp.auth,
        acp=acp,
        mcp=tuple(row["mcp"]),
        has_preset=bool(row["has_preset"]),
    )
