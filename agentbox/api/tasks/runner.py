"""The task runner: a task is a bead under the permanent epic `tasks`, run through the orchestrator
slot.
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from agentbox.adapters.runtime.context import as_caller, current
from agentbox.api.model_usage import ModelUsageReader
from agentbox.api.tasks.beads import spool_ref, to_task
from agentbox.api.tasks.epic import TaskEpic
from agentbox.api.tasks.orphans import remove_orphans
from agentbox.api.tasks.output import TaskOutput
from agentbox.api.tasks.run import TaskRun
from agentbox.api.tasks.spool import Spool, SpoolEntry
from agentbox.api.tasks.submissions import TaskSubmissions
from agentbox.contracts.beads import Bead
from agentbox.contracts.task_records import Task
from agentbox.contracts.tasks import TaskBody
from agentbox.core.background.tasks import log_failures
from agentbox.core.ids import new_trace_id, uuid7
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import (
    AdapterError,
    AlreadyClaimed,
    InvalidTransition,
)
from agentbox.gateway.llm.call_sums import CallSums
from agentbox.manifest.slot_options import LeaseOptions
from agentbox.plan.model import Plan
from agentbox.plan.names import GATEWAY
from agentbox.plan.slots import slot_options

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Slots
    from agentbox.mesh.outbox.outbox import Outbox

MAX_RUNNING = 32
POLL_SECONDS = 5.0  # maximum delay for a bead that became ready by time alone
_log = structlog.get_logger()


class TaskRunner:
    """Submits, runs, cancels and shows tasks. At most MAX_RUNNING run; the rest wait in order of
    priority.
    """

    def __init__(
        self, plan: Plan, paths: Paths, slots: "Slots", outbox: "Outbox | None" = None
    ) -> None:
        """`outbox` buffers results for a shared store of beads while it is down."""
        self._slots = slots
        self._outbox = outbox
        self._spool = Spool(paths.task_spool)
        self._models = ModelUsageReader(CallSums(paths.slot(GATEWAY)))
        self._epic = TaskEpic(plan, paths, slots)
        self._submissions = TaskSubmissions(self._spool, self._epic)
        self.apply_plan(plan)
        self._runs: dict[str, TaskRun] = {}
        self.output = TaskOutput(slots, self.show, self._runs.get)
        self._jobs: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._stopping = False
        self._unstarted: list[SpoolEntry] = []  # of an earlier process, not started here
        # Beads that cannot be closed: not started again by this process.
        self._stuck: set[str] = set()
        self.unfinished = 0  # runs that the next boot has to close

    def apply_plan(self, plan: Plan) -> None:
        """Sets the lease and the agents for runs started from now on."""
        self._submissions.agents = frozenset(plan.agents)
        self._lease_seconds = LeaseOptions.of(slot_options(plan.slots, "beads")).lease_seconds

    def start(self) -> None:
        """Resumes the runs of the last process, then polls for more. Raises OSError for the
        spool.
        """
        self._spool.open()
        buffered = self._outbox.refs if self._outbox else frozenset()
        for entry in self._spool.entries():
            if entry.orphan is not None or entry.ref in buffered:
                continue
            if entry.task_id and entry.lease_id:
                self._start_run(entry)
            else:
                self._unstarted.append(entry)
        if self._outbox is not None:
            self._outbox.start(
                self._slots.beads, lambda: not self._slots.is_down("beads"), self._spool
            )
        self._track(asyncio.ensure_future(self._dispatch()))

    async def stop(self) -> None:
        """Detaches from every run; their agents continue, and the next `start` resumes them."""
        self._stopping = True
        for job in list(self._jobs):
            job.cancel()
        if self._jobs:
            await asyncio.wait(self._jobs)

    async def drain(self, grace_s: float) -> None:
        """Starts no more runs and ends the current ones."""
        self._stopping = True
        await asyncio.gather(*(run.drain(grace_s) for run in list(self._runs.values())))

    @property
    def running(self) -> int:
        return len(self._runs)

    @property
    def ids(self) -> list[str]:
        """Ids of the running tasks."""
        return sorted(self._runs)

    @property
    def agents(self) -> frozenset[str]:
        """Ids of the agents that tasks run."""
        return frozenset(run.agent_id for run in self._runs.values() if run.agent_id)

    async def submit(self, body: TaskBody, creator: str, *, admin: bool = False) -> Task:
        """Queues a task, or returns the one with the same `dedup_key`. `admin`: whether the creator
        has that scope.
        """
        try:
            return self._task(await self._submissions.submit(body, creator, admin=admin))
        finally:
            self._wake.set()

    async def show(self, task_id: str) -> Task:
        (task,) = await self._add_models([self._task(await self._epic.bead(task_id))])
        return task

    async def page(self, limit: int, cursor: str | None) -> tuple[list[Task], str | None]:
        """Tasks in order of id."""
        page = await self._epic.page(limit, cursor)
        tasks = await self._add_models([self._task(bead) for bead in page.items])
        return tasks, page.next_cursor

    async def cancel(self, task_id: str, by: str) -> Task:
        """Cancels a queued task immediately, a running one by ending its agent; an ended one stays
        unchanged.
        """
        while True:
            if (run := self._runs.get(task_id)) is not None:
                await run.cancel(by)
                return await self.show(task_id)
            bead = await self._epic.bead(task_id)
            if bead.status == "closed":
                return await self.show(task_id)
            entry = self._spool.load(spool_ref(bead))
            # Any caller may write another task's ref into a bead.
            owned = entry is not None and entry.task_id == task_id
            context = (
                entry.context()
                if entry is not None and owned
                else replace(current(), session_id=task_id)
            )
            try:
                note = f"cancelled by {by} before it started"
                with as_caller(context):
                    closed = await self._slots.beads.close_bead(
                        task_id, outcome="cancelled", note=note
                    )
            except (AlreadyClaimed, InvalidTransition):
                if (
                    task_id not in self._runs
                    and (await self._epic.bead(task_id)).status != "closed"
                ):
                    raise
                continue
            if entry is not None and owned:
                await self._spool.remove(entry.ref)
            return self._task(closed)

    async def _add_models(self, tasks: list[Task]) -> list[Task]:
        used = await self._models.by_task([task.task_id for task in tasks])
        return [
            replace(task, models=used[task.task_id]) if task.task_id in used else task
            for task in tasks
        ]

    def _task(self, bead: Bead) -> Task:
        run = self._runs.get(bead.id)
        return to_task(bead, run.agent_id if run else None)

    async def _dispatch(self) -> None:
        """Starts ready tasks after a submission, after an end, and every POLL_SECONDS."""
        while not self._stopping:
            self._wake.clear()
            try:
                await self._sweep()
                await self._start_ready()
            except AdapterError as error:
                _log.debug("no tasks started", reason=error.message)
            except OSError as error:  # of the spool; due tasks wait
                _log.error("no tasks started", reason=str(error))
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _sweep(self) -> None:
        """Removes entries without a bead left by a crash, once."""
        if self._unstarted:
            removed = await remove_orphans(
                self._slots.beads, await self._epic.id(), self._spool, self._unstarted
            )
            _log.info("spool swept", orphans=removed)
            self._unstarted = []

    async def _start_ready(self) -> None:
        free = MAX_RUNNING - len(self._runs)
        if free <= 0 or self._stopping or (self._outbox is not None and self._outbox.depth):
            return
        page = await self._slots.beads.ready(
            parent_id=await self._epic.id(), limit=MAX_RUNNING + len(self._stuck)
        )
        busy = self._runs.keys() | self._stuck
        waiting = [
            bead
            for bead in page.items
            if bead.id not in busy and spool_ref(bead) not in self._submissions.refs
        ]
        for bead in waiting[:free]:
            entry = self._spool.load(spool_ref(bead))
            # A bead that names the entry of another is not a task.
            if entry is None or entry.task_id not in (None, bead.id):
                await self._refuse(bead)
                continue
            # A run that was started before and did not end keeps its request id, hence its agent:
            # it is never started twice.
            request_id = entry.request_id or f"task:{bead.id}:{bead.attempts + 1}"
            leased = replace(entry, task_id=bead.id, lease_id=str(uuid7()), request_id=request_id)
            self._start_run(await self._spool.save(leased))

    async def _refuse(self, bead: Bead) -> None:
        note = "this box has no spec for it: it was submitted elsewhere, or the spool was lost"
        try:
            with as_caller(replace(current(), session_id=bead.id, trace_id=new_trace_id())):
                await self._slots.beads.close_bead(bead.id, outcome="failed", note=note)
        except AdapterError as error:
            if error.retryable:
                raise
            self._stuck.add(bead.id)  # it must not block ready tasks after it
            _log.error("bead not closed", task_id=bead.id, reason=error.message)

    def _start_run(self, entry: SpoolEntry) -> None:
        run = TaskRun(entry, self._spool, self._slots, self._lease_seconds, self._outbox)
        self._runs[run.task_id] = run
        with as_caller(entry.context()):
            job = asyncio.ensure_future(run.run())
        job.add_done_callback(lambda _job: self._finish_run(run))
        self._track(job)

    def _finish_run(self, run: TaskRun) -> None:
        self._runs.pop(run.task_id, None)
        self.unfinished += run.unfinished
        if run.stuck:
            self._stuck.add(run.task_id)
        self._wake.set()

    def _track(self, job: "asyncio.Task[None] | asyncio.Future[None]") -> None:
        assert isinstance(job, asyncio.Task)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        job.add_done_callback(log_failures("task runner"))
