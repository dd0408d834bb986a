"""The orderly end of a box: not ready, agents ended, slots closed, shutdown marked clean.

Clean means that every slot was closed with all accepted data. A task whose agent did not end in
time, or whose bead could not be stored, does not change that: it is counted in `ShutdownCompleted`,
and the next boot closes it from its spool entry.
"""

import asyncio
import time
from typing import Literal, Protocol

import structlog

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.plan_source import PlanSource
from agentbox.api.tasks.run import ENDED
from agentbox.api.tasks.runner import TaskRunner
from agentbox.box.readiness.evaluator import Evaluator
from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.box.supervision.current_boot import mark_clean
from agentbox.contracts.orchestrator import LIMIT, SHUTDOWN_GRACE, AgentHandle, AgentInfo
from agentbox.core.errors import AgentboxError
from agentbox.core.slot_errors import AdapterError
from agentbox.manifest.slot_options import ProcessOptions
from agentbox.plan.slots import slot_options

AGENT_SECONDS = 7.0  # of the 10 s that the program has; the rest is for the slots
_log = structlog.get_logger()


class Stoppable(Protocol):
    """The background work."""

    async def stop(self) -> None: ...


class MeshMember(Protocol):
    """This box in the mesh."""

    async def deregister(self) -> None: ...


class SlotShutdown:
    """Ends what uses the slots, then the slots."""

    def __init__(self, background: Stoppable, mesh: MeshMember, slots: Slots) -> None:
        self._background, self._mesh, self._slots = background, mesh, slots

    async def close(self) -> bool:
        """Imports the last boot events, then closes every slot. False when a slot did not close in
        time.
        """
        await self._background.stop()
        deregistration = asyncio.ensure_future(self._mesh.deregister())
        try:
            await asyncio.gather(deregistration, self._slots.stop())
        except AgentboxError as error:
            _log.error("slots not closed", reason=error.message)
            return False
        return True


class Drain:
    """Runs once; `begin` may be called again. Afterwards the process still answers `/livez`, and
    `/ready` with 503. `closing` is set when streams must end.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        tasks: TaskRunner,
        slots: Slots,
        shutdown: SlotShutdown,
        plans: PlanSource,
        log: BootEventLog,
        closing: asyncio.Event,
    ) -> None:
        self._evaluator, self._tasks, self._slots = evaluator, tasks, slots
        self._shutdown, self._plans, self._log = shutdown, plans, log
        self._closing = closing
        self._job: asyncio.Task[None] | None = None
        self.state: Literal["none", "draining", "drained"] = "none"

    @property
    def started(self) -> bool:
        return self._job is not None

    def begin(self, reason: str) -> "asyncio.Task[None]":
        """Starts the drain; awaiting the task waits for its end."""
        if self._job is None:
            self.state = "draining"
            self._evaluator.drain()
            self._job = asyncio.ensure_future(self._run(reason))
        return self._job

    async def _run(self, reason: str) -> None:
        start = time.monotonic()
        self._log.emit("ShutdownStarted", reason=reason, drained_ms=0)
        ended, unfinished = self._tasks.ids, await self._end_agents()
        self._closing.set()
        clean = await self._shutdown.close()
        self.state = "drained"
        if not clean:
            return
        if self._log.boot_id:
            mark_clean(self._log.paths, self._log.boot_id)
        drained = round((time.monotonic() - start) * 1000)
        self._log.emit(
            "ShutdownCompleted",
            reason=reason,
            drained_ms=drained,
            tasks_ended=ended,
            tasks_left=unfinished,
        )

    async def _end_agents(self) -> int:
        """Tasks end their own agents and beads; other agents of this box are ended here. Returns
        the number of tasks left to the next boot.
        """
        tasks, options = self._tasks, slot_options(self._plans.current.slots, "orchestrator")
        grace = min(SHUTDOWN_GRACE, ProcessOptions.of(options).grace_seconds)
        try:
            async with asyncio.timeout(AGENT_SECONDS):
                await asyncio.gather(tasks.drain(grace), self._end_others(tasks.agents, grace))
        except TimeoutError:
            _log.error("agents not ended in time", tasks=tasks.running)
        unfinished = tasks.running + tasks.unfinished
        await tasks.stop()
        return unfinished

    async def _end_others(self, task_agents: frozenset[str], grace: float) -> None:
        try:
            living = [
                agent.handle
                for agent in await self._list_agents()
                if agent.state not in ENDED and agent.kind != "session"  # agent-host suspends them
            ]
        except AdapterError as error:
            _log.warning("agents not listed", reason=error.message)
            return
        if "local" not in self._slots.capabilities("orchestrator"):
            return  # they belong to another box
        await asyncio.gather(
            *(self._end(handle, grace) for handle in living if handle.agent_id not in task_agents)
        )

    async def _list_agents(self) -> list[AgentInfo]:
        agents: list[AgentInfo] = []
        cursor: str | None = None
        while True:
            page = await self._slots.orchestrator.list(limit=LIMIT[1], cursor=cursor)
            agents += page.items
            cursor = page.next_cursor
            if cursor is None:
                return agents

    async def _end(self, agent: AgentHandle, grace: float) -> None:
        try:
            await self._slots.orchestrator.terminate(agent, grace_s=grace)
        except AdapterError as error:
            _log.warning("agent not ended", agent_id=agent.agent_id, reason=error.message)
