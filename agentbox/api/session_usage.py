"""What a session used: its model calls, and the time and memory of its agent."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from agentbox.api.model_usage import ModelUsageReader
from agentbox.contracts.orchestrator import Orchestrator
from agentbox.contracts.sessions import Session
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import AdapterError


class SessionUsageReader:
    """What cannot be read stays unknown; it hides no session."""

    def __init__(self, agents: Orchestrator, models: ModelUsageReader) -> None:
        self._agents, self._models = agents, models

    async def fill(self, sessions: Iterable[Session]) -> tuple[Session, ...]:
        """The same, with `models` and `resources`."""
        rows = tuple(sessions)
        used = await self._models.by_agent_id([row.sandbox_id for row in rows if row.sandbox_id])
        resources = await asyncio.gather(*(self._resources(row.sandbox_id) for row in rows))
        return tuple(
            replace(row, models=used.get(row.sandbox_id), resources=one)
            for row, one in zip(rows, resources, strict=True)
        )

    async def _resources(self, sandbox_id: str) -> JsonObj:
        if not sandbox_id:
            return {}
        try:
            return (await self._agents.get(sandbox_id)).usage
        except AdapterError:  # agent-host has forgotten it, or starts
            return {}
