"""Makes backups of a running box, one at a time: cut, staging, program, result."""

import asyncio
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import apsw
import structlog

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.backups.cut import Cutter, OpenCut, in_thread
from agentbox.api.backups.parts import Tree, trees
from agentbox.api.backups.program import BackupProgram
from agentbox.api.backups.record import BackupRecord
from agentbox.api.backups.staging import (
    check_room,
    clean_staging,
    note_lengths,
    remove_staged,
    stage,
)
from agentbox.api.metrics.backup_metrics import BackupMetrics
from agentbox.api.plan_source import PlanSource
from agentbox.contracts.backups import Backup
from agentbox.core import clock
from agentbox.core.background.tasks import log_failures
from agentbox.core.errors import AgentboxError
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import AdapterError, BackupNotSetUp, BackupRunning, BackupUnusable
from agentbox.plan.model import Plan

SCHEDULE: Final = "urn:agentbox:backup.schedule"
_log = structlog.get_logger()


class _Stopped(Exception):
    """The API ends."""

    def __init__(self) -> None:
        super().__init__("the box was stopped")


class BackupMaker:
    """`current` is the backup that is being made, or the last one. What it stages is removed when
    the program has ended, and when the API starts.
    """

    def __init__(
        self,
        paths: Paths,
        plans: PlanSource,
        slots: Slots,
        program: BackupProgram,
        record: BackupRecord,
        metrics: BackupMetrics,
    ) -> None:
        self._paths, self._plans, self._slots = paths, plans, slots
        self._program, self.record, self._metrics = program, record, metrics
        self._cutter = Cutter(paths, slots)
        self.current: Backup | None = None
        self._running = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._stopping = threading.Event()

    def clean(self) -> None:
        """Removes what a killed backup left. Blocks. Raises OSError."""
        clean_staging(self._paths)

    async def create(self, tag: str, principal: str) -> Backup:
        """Takes the cut; the rest goes on after the return. Raises BackupRunning, BackupNotSetUp,
        BackupBusy, QuotaExceeded, BackupUnusable, and the error of a slot.
        """
        if self._running.locked():
            raise _running(self.current)
        plan = self._plans.current
        if not plan.backup.is_set_up:
            raise BackupNotSetUp(
                "cannot back up: nobody could read it", hint="Run `agentbox backup init`."
            )
        await self._running.acquire()
        made = Backup(id=uuid7(), time=clock.now(), tag=tag, state="cutting")
        self.current = made
        started = time.monotonic()
        try:
            await asyncio.to_thread(self.record.attempted)
            cut, folders = await self._cut(made, plan)
        except BaseException as error:
            self._running.release()
            self._show(await self._fail(made, principal, _reason(error), str(error), started))
            if isinstance(error, (OSError, apsw.Error)):
                raise _unusable(error) from error
            raise
        self._show(replace(made, time=cut.time, state="staging", partial=cut.partial))
        self._task = asyncio.create_task(
            self._finish(cut, folders, principal, started), name="backup"
        )
        self._task.add_done_callback(log_failures("backup"))
        assert self.current is not None
        return self.current

    async def run(self) -> None:
        """Until cancelled, with the API: then a backup that is being made is ended."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.stop()

    async def wait(self) -> None:
        """Until no backup is being made."""
        async with self._running:
            return

    async def stop(self) -> None:
        """Stops the backup that is being made; no later one begins. Idempotent."""
        self._stopping.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _cut(self, made: Backup, plan: Plan) -> tuple[OpenCut, list[Tree]]:
        folders = list(trees(self._paths, plan.backup.include))
        cut = await self._cutter.prepare(made.id, made.tag, plan)
        try:
            await in_thread(lambda: self._check_room(cut, folders))
            await self._cutter.take(cut)
        except BaseException:
            await asyncio.to_thread(cut.close)
            raise
        self._metrics.paused.observe(cut.paused)
        return cut, folders

    def _check_room(self, cut: OpenCut, folders: list[Tree]) -> None:
        self._paths.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
        size = cut.size() + sum(folder.size() for folder in folders)
        check_room(self._paths.backups, size, cut.plan.backup.min_free)

    async def _finish(
        self, cut: OpenCut, folders: list[Tree], principal: str, started: float
    ) -> None:
        made = self.current
        assert made is not None, "it was cut"
        try:
            await self._stage_shielded(cut, folders)
            made = self._show(replace(made, state="writing"))
            result = await self._program.run(_request(cut))
            made = await self._end(made, cut, principal, started, result)
        except asyncio.CancelledError:
            made = await self._fail(made, principal, "stopped", "the box was stopped", started)
            raise
        except Exception as error:  # noqa: BLE001 - a bug too is a failed backup
            if not isinstance(error, (AgentboxError, OSError, _Stopped)):
                _log.error("backup failed", exc_info=error)
            made = await self._fail(made, principal, _reason(error), str(error), started)
        finally:
            try:
                await asyncio.to_thread(self._discard, cut)
            finally:
                self._running.release()
                self._show(made)  # who reads that it has ended may begin the next one

    async def _stage_shielded(self, cut: OpenCut, folders: list[Tree]) -> None:
        """A thread cannot be cancelled: it is asked to end, and waited for."""
        staging = asyncio.ensure_future(asyncio.to_thread(self._stage, cut, folders))
        try:
            await asyncio.shield(staging)
        except asyncio.CancelledError:
            self._stopping.set()
            await asyncio.wait({staging})
            staging.exception()
            raise

    def _stage(self, cut: OpenCut, folders: list[Tree]) -> None:
        try:
            stage(cut, self._paths, folders, note_lengths(folders), self._check_stop)
        finally:
            cut.close()  # bodies are held and the stores' logs grow until then

    def _check_stop(self) -> None:
        if self._stopping.is_set():
            raise _Stopped

    def _discard(self, cut: OpenCut) -> None:
        try:
            cut.close()
        finally:
            with suppress(FileNotFoundError):
                remove_staged(self._paths.backup_staging / cut.id)

    async def _end(
        self,
        made: Backup,
        cut: OpenCut,
        principal: str,
        started: float,
        result: Mapping[str, Any] | None,
    ) -> Backup:
        if result is None:
            message = "the program backup was killed"
            return await self._fail(made, principal, "killed", message, started)
        if not result["ok"]:
            reason, message = str(result["reason"]), str(result["message"])
            return await self._fail(made, principal, reason, message, started)
        seconds = time.monotonic() - started
        removed = [str(id) for id in result["removed"]]
        await asyncio.to_thread(self.record.succeeded, cut.id, removed)
        self._metrics.made(seconds, int(result["size"]), time.time())
        await self._slots.journal.record(
            "backup.created",
            {
                "id": cut.id,
                "head_sha256": result["head_sha256"],
                "tag": cut.tag,
                "size": int(result["size"]),
                "partial": list(cut.partial),
                "removed": removed,
                "seconds": round(seconds, 3),
                "paused_ms": round(cut.paused * 1000, 1),
                "by": principal,
            },
        )
        if "reason" in result:  # it was made; what is not to be kept was not removed
            _log.warning("old snapshots are kept", reason=result["message"])
        return replace(made, state="created", size=int(result["size"]), verified_at=clock.now())

    async def _fail(
        self, made: Backup, principal: str, reason: str, message: str, started: float
    ) -> Backup:
        self._metrics.failed(reason)
        data: JsonObj = {
            "id": made.id,
            "tag": made.tag,
            "reason": reason,
            "message": message,
            "seconds": round(time.monotonic() - started, 3),
            "by": principal,
        }
        await self._slots.journal.write_shielded(
            lambda: self._slots.journal.record("backup.failed", data)
        )
        return replace(made, state="failed", reason=message or reason)

    def _show(self, made: Backup) -> Backup:
        self.current = made
        return made


def _request(cut: OpenCut) -> dict[str, Any]:
    table = cut.plan.backup
    return {
        **table.request(cut.plan.name),
        "id": cut.id,
        "min_free": table.min_free,
        "rate": table.rate,
        "keep": [table.keep, table.keep_daily, table.keep_weekly, table.keep_monthly],
    }


def _reason(error: BaseException) -> str:
    if isinstance(error, AdapterError):
        return error.code
    if isinstance(error, (OSError, apsw.Error)):
        return "unusable"
    return "stopped" if isinstance(error, _Stopped) else "internal"


def _unusable(error: OSError | apsw.Error) -> BackupUnusable:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return BackupUnusable(
        f"cannot make a backup: {why}",
        hint="Free room on the state volume, or repair it; see the log of the API.",
        reason="unusable",
    )


def _running(current: Backup | None) -> BackupRunning:
    id = current.id if current is not None else ""
    return BackupRunning(
        f"cannot make a backup: {id} is being made",
        hint="Wait until it has ended: `agentbox backup list`.",
        id=id,
    )
