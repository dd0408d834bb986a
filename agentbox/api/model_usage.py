"""Model calls of tasks and agents, for their records."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import structlog

from agentbox.contracts.usage import ModelUsage
from agentbox.core.slot_errors import AdapterError
from agentbox.gateway.llm.call_sums import CallSums

_log = structlog.get_logger()


class ModelUsageReader:
    """A record that cannot be read leaves usage unknown; it hides no task and no review."""

    def __init__(self, calls: CallSums) -> None:
        self._calls = calls

    async def by_task(self, ids: Sequence[str]) -> Mapping[str, ModelUsage]:
        """The usage of the tasks that called a model."""
        return await self._read(self._calls.by_task, ids)

    async def by_agent_id(self, ids: Sequence[str]) -> Mapping[str, ModelUsage]:
        """The usage of the agents that called a model."""
        return await self._read(self._calls.by_agent_id, ids)

    async def _read(
        self, query: Callable[[Sequence[str]], Mapping[str, ModelUsage]], ids: Sequence[str]
    ) -> Mapping[str, ModelUsage]:
        try:
            return await asyncio.to_thread(query, ids)
        except AdapterError as error:
            _log.warning("cannot read the record of model calls", reason=error.message)
            return {}
