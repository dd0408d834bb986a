"""The orderly end of a box: un-ready, agents ended, slots closed, shutdown marked clean."""

import asyncio
import time
from typing import TYPE_CHECKING, Literal

import structlog

from agentbox.errors import AgentboxError
from agentbox.supervision.shutdown import mark_clean

if TYPE_CHECKING:
    from agentbox.api.services import Services

TASK_SECONDS = 7.0  # of the 10 s that the program has; slots take what is left
_log = structlog.get_logger()


class Drain:
    """Runs once; `begin` may be called again. After it the process still answers `/livez`, and `/ready` with 503."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._job: asyncio.Task[None] | None = None
        self.state: Literal["none", "draining", "drained"] = "none"

    @property
    def begun(self) -> bool:
        return self._job is not None

    def begin(self, reason: str) -> "asyncio.Task[None]":
        """The drain, under way; awaiting it waits for its end."""
        if self._job is None:
            self.state = "draining"
            self._services.evaluator.drain()
            self._job = asyncio.ensure_future(self._run(reason))
        return self._job

    async def _run(self, reason: str) -> None:
        services, began = self._services, time.monotonic()
        services.say("ShutdownStarted", reason=reason, drained_ms=0)
        await self._end_tasks()
        services.closing.set()
        clean = await close_slots(services)
        self.state = "drained"
        if not clean:
            return
        if services.boot.boot_id:
            mark_clean(services.paths, services.boot.boot_id)
        services.say("ShutdownCompleted", reason=reason, drained_ms=round((time.monotonic() - began) * 1000))

    async def _end_tasks(self) -> None:
        try:
            async with asyncio.timeout(TASK_SECONDS):
                await self._services.tasks.drain()
        except TimeoutError:
            _log.error("tasks not ended in time", running=self._services.tasks.running)
        await self._services.tasks.stop()


async def close_slots(services: "Services") -> bool:
    """Imports what the boot said last, then closes every slot. False when a slot did not close in time."""
    await services.watch.stop()
    try:
        await services.container.stop()
    except AgentboxError as error:
        _log.error("slots not closed", reason=error.message)
        return False
    return True
