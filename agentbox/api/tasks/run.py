"""Runs one task: claim, spawn, heartbeat, wait, close. Every step may be repeated after a crash."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog

from agentbox.adapters.runtime.context import as_caller, current
from agentbox.api.tasks.beads import bead_result, describe_exit
from agentbox.api.tasks.run_exceptions import (
    DeferredToNextBoot,
    LeaseLostToOther,
    StoredInOutbox,
)
from agentbox.api.tasks.slot_retry import RETRY_SECONDS, SlotRetry
from agentbox.api.tasks.spool import Spool, SpoolEntry
from agentbox.api.tasks.stored_entry import StoredEntry
from agentbox.contracts.beads import Outcome
from agentbox.contracts.orchestrator import AgentHandle, AgentInfo, AgentSpec
from agentbox.core.slot_errors import (
    AdapterError,
    AlreadyClaimed,
    CursorExpired,
    InvalidTransition,
    LeaseLost,
    NotFound,
    ValidationError,
    ValueTooLarge,
)

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Slots
    from agentbox.mesh.outbox.outbox import Outbox

ASSIGNEE = "urn:agentbox:program:management-api"
ENDED = frozenset({"exited", "failed", "lost"})
_log = structlog.get_logger()


class TaskRun:
    """The run of a task. `agent_created` is set once its agent has an id, `done` once its bead is
    closed; `stuck` when the store rejects the close, `unfinished` when the next boot has to close
    it.
    """

    def __init__(
        self,
        entry: SpoolEntry,
        spool: Spool,
        slots: "Slots",
        lease_seconds: int,
        outbox: "Outbox | None" = None,
    ) -> None:
        assert entry.task_id is not None
        self.task_id: str = entry.task_id
        self._stored = StoredEntry(entry, spool)
        self.agent_created = asyncio.Event()
        self.done = asyncio.Event()
        self._slots = slots
        self._lease_seconds = lease_seconds
        self._retry = SlotRetry(self._stored, slots, outbox)
        self.stuck = self.unfinished = False
        # grace of an agent that is ended; None = the slot's default
        self._grace: float | None = None
        if entry.agent_id:
            self.agent_created.set()

    @property
    def entry(self) -> SpoolEntry:
        return self._stored.entry

    @property
    def agent_id(self) -> str | None:
        return self.entry.agent_id

    async def run(self) -> None:
        """Runs the task to its end. Cancelling this leaves the agent running and the spool entry in
        place.
        """
        try:
            await self._claim()
            if await self._work_leased():
                await self._stored.remove()
        except LeaseLostToOther as error:
            _log.warning("task abandoned", task_id=self.task_id, reason=str(error))
            await self._end_agent()
            await self._stored.remove()
        except DeferredToNextBoot as error:
            self.unfinished = True
            _log.warning("task left to the next start", task_id=self.task_id, reason=str(error))
        except StoredInOutbox:
            _log.info("result stored in the outbox", task_id=self.task_id)
        except AdapterError as refusal:
            self.stuck = True
            _log.error("task left to the next start", task_id=self.task_id, reason=refusal.message)
        finally:
            self.done.set()

    async def wait_agent_or_done(self) -> None:
        """Returns once its agent has an id, or the run is done without one."""
        waiters = [
            asyncio.ensure_future(self.agent_created.wait()),
            asyncio.ensure_future(self.done.wait()),
        ]
        await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        for waiter in waiters:
            waiter.cancel()

    async def cancel(self, by: str) -> None:
        """Ends the agent; the bead closes as cancelled. Returns when both have happened."""
        await self._stored.update(cancelled_by=by)
        await self._end_agent()
        await self.done.wait()

    async def drain(self, grace_s: float) -> None:
        """As `cancel`, for a shutdown: the bead closes as failed with that reason."""
        self._retry.draining, self._grace = True, grace_s
        await self._end_agent()
        await self.done.wait()

    async def _claim(self) -> None:
        """Claims the lease of the spool entry, or finds that it is held already."""
        beads, lease = self._slots.beads, self.entry.lease_id
        assert lease is not None
        try:
            seconds = self._lease_seconds
            await self._retry(
                lambda: beads.claim(self.task_id, ASSIGNEE, lease_id=lease, lease_s=seconds)
            )
        except (AlreadyClaimed, InvalidTransition, NotFound, LeaseLost) as error:
            raise LeaseLostToOther(error.message) from error

    async def _work_leased(self) -> bool:
        """Works while the lease is held: a lost lease cancels it. False when the bead went back to
        the queue.
        """
        work = asyncio.ensure_future(self._work())
        heartbeat = asyncio.ensure_future(self._heartbeat())
        try:
            await asyncio.wait({work, heartbeat}, return_when=asyncio.FIRST_COMPLETED)
            if heartbeat.done() and not work.done():
                heartbeat.result()
            return await work
        finally:
            work.cancel()
            heartbeat.cancel()
            await asyncio.wait({work, heartbeat})

    async def _heartbeat(self) -> None:
        """Raises LeaseLostToOther when another caller has the lease. An unreachable store does not
        end the run, and a lease that expired meanwhile is claimed again.
        """
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            try:
                lease, seconds = self.entry.lease_id or "", self._lease_seconds
                await self._slots.beads.heartbeat(self.task_id, lease, lease_s=seconds)
            except LeaseLost:
                await self._claim()
                _log.warning("lease claimed again", task_id=self.task_id)
            except NotFound as error:
                raise LeaseLostToOther(error.message) from error
            except AdapterError as error:
                _log.warning("heartbeat failed", task_id=self.task_id, reason=error.message)

    async def _work(self) -> bool:
        if not self.entry.agent_id:
            if self.entry.cancelled_by:
                return await self._close(
                    "cancelled", f"cancelled by {self.entry.cancelled_by} before it started", None
                )
            if self._retry.draining:
                return await self._release_bead()
            if (refusal := await self._spawn()) is not None:
                return await self._close(
                    "failed",
                    f"could not start: {refusal.message}",
                    {"problem": refusal.to_problem()},
                )
        self.agent_created.set()
        if self.entry.cancelled_by or self._retry.draining:
            await self._end_agent()
        info = await self._wait_agent()
        if info is None:
            return await self._close("failed", "agent-host does not know its agent any more", None)
        return await self._close_from_exit(info)

    async def _release_bead(self) -> bool:
        """Releases a bead whose agent was not started: the next boot takes it."""
        lease, beads = self.entry.lease_id or "", self._slots.beads
        try:
            note = "the box was shut down"
            await self._retry(
                lambda: beads.release(self.task_id, lease, note=note),
                fallback=("release", {"note": note}),
            )
        except (LeaseLost, InvalidTransition, NotFound) as error:
            raise LeaseLostToOther(error.message) from error
        await self._stored.update(lease_id=None, request_id=None)
        return False

    async def _spawn(self) -> AdapterError | None:
        """Starts the agent, or finds the one that this request started before. Returns the error if
        it was rejected.
        """
        entry, orchestrator = self.entry, self._slots.orchestrator
        spec, request_id = AgentSpec.from_wire(entry.spec), entry.request_id or ""
        # Only administrators can submit such a task.
        scopes = frozenset({"admin"} if spec.workspace == "direct" else ())
        try:
            with as_caller(replace(current(), scopes=scopes, submission=entry.submission)):
                handle = await self._retry(
                    lambda: orchestrator.spawn(
                        spec, request_id=request_id, stdin=entry.stdin, attached=entry.attached
                    )
                )
        except AdapterError as refusal:
            return refusal
        await self._stored.update(agent_id=handle.agent_id, generation=handle.generation)
        return None

    async def _wait_agent(self) -> AgentInfo | None:
        """Waits for the end of the agent, across restarts of agent-host. None when it is unknown
        there.
        """
        agent_id, cursor, orchestrator = self.entry.agent_id or "", 0, self._slots.orchestrator
        while True:
            try:
                async for item in orchestrator.stream(agent_id, since=cursor, follow=True):
                    cursor = item.cursor
                info = await self._retry(lambda: orchestrator.get(agent_id))
            except NotFound:
                return None
            except CursorExpired as gap:  # continue with the oldest output that exists
                cursor = int(gap.members["oldest"])
                continue
            except AdapterError as error:
                _log.warning("agent stream interrupted", task_id=self.task_id, reason=error.message)
                await asyncio.sleep(RETRY_SECONDS[0])
                continue
            if info.state in ENDED and info.exit is not None:
                return info
            await asyncio.sleep(RETRY_SECONDS[0])

    async def _close_from_exit(self, info: AgentInfo) -> bool:
        assert info.exit is not None
        note = describe_exit(info.exit, self.entry.timeout_s)
        outcome: Outcome = "failed"
        if self.entry.cancelled_by:
            note, outcome = f"cancelled by {self.entry.cancelled_by}", "cancelled"
        elif self._retry.draining:
            note = "the box was shut down while it ran"
        elif info.exit.reason == "exit" and info.exit.code == 0:
            outcome = "done"
        return await self._close(outcome, note, bead_result(info))

    async def _close(self, outcome: Outcome, note: str, result: Any) -> bool:
        """Closes the bead. If the store rejects the result, it is omitted, and the note says so."""
        try:
            body = {"outcome": outcome, "note": note, "result": result}
            await self._retry(
                lambda: self._close_with(outcome, note, result),
                full_store=True,
                fallback=("close", body),
            )
        except (LeaseLost, InvalidTransition, NotFound) as error:
            raise LeaseLostToOther(error.message) from error
        except (ValidationError, ValueTooLarge) as error:
            _log.error("result not stored", task_id=self.task_id, reason=error.message)
            await self._retry(
                lambda: self._close_with(outcome, "its result was refused", None), full_store=True
            )
        return True

    async def _close_with(self, outcome: Outcome, note: str, result: Any) -> None:
        lease, beads = self.entry.lease_id, self._slots.beads
        try:
            await beads.close_bead(
                self.task_id, outcome=outcome, note=note, result=result, lease_id=lease
            )
        except LeaseLost:
            await self._claim()
            await beads.close_bead(
                self.task_id, outcome=outcome, note=note, result=result, lease_id=lease
            )

    async def _end_agent(self) -> None:
        """Ends the agent's process tree, if there is one."""
        if self.entry.agent_id is None:
            return
        handle = AgentHandle(agent_id=self.entry.agent_id, generation=self.entry.generation)
        try:
            with as_caller(self.entry.context()):  # independent of the caller
                await self._slots.orchestrator.terminate(handle, grace_s=self._grace)
        except AdapterError as error:
            _log.warning("agent not ended", task_id=self.task_id, reason=error.message)
