"""Submission of tasks: the spool entry is stored first, then the bead that names it."""

import base64
from dataclasses import replace

import structlog

from agentbox.adapters.runtime.context import as_caller
from agentbox.api.tasks.beads import bead_data, check_body
from agentbox.api.tasks.epic import TaskEpic
from agentbox.api.tasks.spool import Spool, SpoolEntry
from agentbox.contracts.beads import Bead, BeadSpec
from agentbox.contracts.tasks import TaskBody
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import AdapterError, BackendError, disk_full_error, is_disk_full

_log = structlog.get_logger()


class TaskSubmissions:
    """`refs` are the spool entries that are being submitted: their tasks must not start yet.
    `agents` are the names of the manifest's agents.
    """

    def __init__(self, spool: Spool, epic: TaskEpic) -> None:
        self._spool, self._epic = spool, epic
        self.agents: frozenset[str] = frozenset()
        self.refs: set[str] = set()

    async def submit(self, body: TaskBody, creator: str, *, admin: bool) -> Bead:
        """The bead of a new task, or the one with the same `dedup_key`."""
        check_body(body, self.agents)
        entry = replace(_spool_entry(body), submitter=creator, submitter_admin=admin)
        self.refs.add(entry.ref)
        try:
            return await self._create_bead(body, await self._save_entry(entry), creator)
        finally:
            self.refs.discard(entry.ref)

    async def _save_entry(self, entry: SpoolEntry) -> SpoolEntry:
        """Raises QuotaExceeded or BackendError when the spool is not writable: nothing is queued
        that a crash would lose.
        """
        try:
            return await self._spool.save(entry)
        except OSError as error:
            if is_disk_full(error):
                raise disk_full_error("store the task") from error
            detail = f"cannot store the task: {error.strerror}"
            raise BackendError(
                detail, hint="free space on the state volume", slot="beads", impl="spool"
            ) from error

    async def _create_bead(self, body: TaskBody, entry: SpoolEntry, creator: str) -> Bead:
        spec = BeadSpec(
            title=body.spec.name,
            creator=creator,
            priority=body.priority,
            tags=("task",),
            data=bead_data(body, entry.ref),
            dedup_key=body.dedup_key,
            not_before=body.not_before,
            max_attempts=1000,
        )
        try:
            await self._epic.id()  # made as the box, not as the caller
            with as_caller(replace(entry.context(), opens_session=True)):
                bead, created = await self._epic.create_child(spec)
        except AdapterError:
            await self._spool.remove(entry.ref)
            raise
        if created:
            await self._bind_entry(entry, bead.id)
        else:
            await self._spool.remove(entry.ref)
        return bead

    async def _bind_entry(self, entry: SpoolEntry, task_id: str) -> None:
        """Links the entry to its bead. The bead names the entry already, so a queued task is never
        rejected here.
        """
        try:
            await self._spool.save(replace(entry, task_id=task_id))
        except OSError as error:
            _log.error("spool entry not written", task_id=task_id, reason=str(error))


def _spool_entry(body: TaskBody) -> SpoolEntry:
    """The spool entry. The time limit is the agent's own, so that agent-host enforces it."""
    wall = body.spec.limits.wall_seconds
    limits = replace(
        body.spec.limits, wall_seconds=min(wall, body.timeout_s) if wall else body.timeout_s
    )
    spec = replace(body.spec, limits=limits, stdin="null" if body.input is None else "pipe")
    input_base64 = None if body.input is None else base64.b64encode(body.input).decode("ascii")
    return SpoolEntry(
        ref=uuid7(),
        spec=spec.to_wire(),
        timeout_s=body.timeout_s,
        input=input_base64,
        attached=body.attached,
    )
