"""The generation that runs, over HTTP."""

import asyncio
from typing import Final

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.hold import Hold
from agentbox.api.stores import read_stores
from agentbox.contracts.generation import GenerationState, Trial
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.ids import new_trace_id
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError

_PROFILE: Final = "sandboxed"  # the one of `agentbox run`
_SECONDS: Final = 45


class GenerationHandlers:
    """Shows, tries and releases it."""

    def __init__(self, paths: Paths, slots: Slots, hold: Hold) -> None:
        self._paths, self._slots, self._hold = paths, slots, hold

    async def show(self) -> GenerationState:
        stores = await asyncio.to_thread(read_stores, self._paths)
        try:
            seq, digest = await self._slots.events.head()
        except AdapterError:  # the slot is off: there is no journal to compare
            seq, digest = -1, "0" * 64
        return GenerationState(
            held=self._hold.held,
            generation=self._hold.generation,
            stores=stores,
            journal_seq=seq,
            journal_hash=digest,
        )

    async def release(self) -> GenerationState:
        """Idempotent; the event is written once."""
        if self._hold.held:
            await asyncio.to_thread(self._hold.release)
            self._hold.notify()
            await self._slots.journal.record(
                "generation.confirmed", {"generation": self._hold.generation}
            )
        return await self.show()

    async def try_agent(self) -> Trial:
        """Raises the error of the orchestrator where no agent can be started."""
        spec = AgentSpec(name="generation-trial", argv=("true",), profile=_PROFILE)
        result = await self._slots.orchestrator.run_once(
            spec, request_id=f"generation-trial:{new_trace_id()}", timeout_s=_SECONDS, max_output=0
        )
        code = result.exit.code
        reason = "" if code == 0 else f"it ended with {result.exit.reason} ({code})"
        return Trial(code=code, reason=reason)
