"""The orderly end of a box: un-ready, agents ended, slots closed, shutdown marked clean.

Clean says that every slot was closed with all that it had taken. A task whose agent did not end in time, or whose bead
no store took, does not change that: it is counted in `ShutdownCompleted`, and the next boot closes it from its spool entry.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Literal

import structlog

from agentbox.api.tasks.run import ENDED
from agentbox.box.supervision.shutdown import mark_clean
from agentbox.contracts.orchestrator import LAST_GRACE, LIMIT, AgentHandle, AgentInfo
from agentbox.core.errors import AgentboxError
from agentbox.core.slot_errors import AdapterError

if TYPE_CHECKING:
    from agentbox.api.services import Services

AGENT_SECONDS = 7.0  # of the 10 s that the program has; slots take what is left
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
        ended, left = services.tasks.ids, await self._end_agents()
        services.closing.set()
        clean = await close_slots(services)
        self.state = "drained"
        if not clean:
            return
        if services.boot.boot_id:
            mark_clean(services.paths, services.boot.boot_id)
        drained = round((time.monotonic() - began) * 1000)
        services.say("ShutdownCompleted", reason=reason, drained_ms=drained, tasks_ended=ended, tasks_left=left)

    async def _end_agents(self) -> int:
        """Tasks end theirs, and their beads; the others are ended here, unless they live at a host. How many tasks are left to the next boot."""
        tasks, options = self._services.tasks, self._services.plan.slots["orchestrator"].options
        grace = min(LAST_GRACE, float(options.get("grace_seconds", LAST_GRACE)))
        try:
            async with asyncio.timeout(AGENT_SECONDS):
                await asyncio.gather(tasks.drain(grace), self._end_others(tasks.agents, grace))
        except TimeoutError:
            _log.error("agents not ended in time", tasks=tasks.running)
        left = tasks.running + tasks.left
        await tasks.stop()
        return left

    async def _end_others(self, of_tasks: frozenset[str], grace: float) -> None:
        try:
            living = [one.handle for one in await self._agents() if one.state not in ENDED]
        except AdapterError as error:
            _log.warning("agents not listed", reason=error.message)
            return
        if "local" not in self._services.container.capabilities("orchestrator"):
            return  # they are another box's, and not all of them ours
        await asyncio.gather(*(self._end(one, grace) for one in living if one.agent_id not in of_tasks))

    async def _agents(self) -> list[AgentInfo]:
        found: list[AgentInfo] = []
        cursor: str | None = None
        while True:
            page = await self._services.container.orchestrator.list(limit=LIMIT[1], cursor=cursor)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def _end(self, agent: AgentHandle, grace: float) -> None:
        try:
            await self._services.container.orchestrator.terminate(agent, grace_s=grace)
        except AdapterError as error:
            _log.warning("agent not ended", agent_id=agent.agent_id, reason=error.message)


async def close_slots(services: "Services") -> bool:
    """Imports what the boot said last, then closes every slot. False when a slot did not close in time."""
    await services.watch.stop()
    leaving = asyncio.ensure_future(services.mesh.leave())
    try:
        await asyncio.gather(leaving, services.container.stop())
    except AgentboxError as error:
        _log.error("slots not closed", reason=error.message)
        return False
    return True
