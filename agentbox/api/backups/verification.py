"""Verifies snapshots of the running box: on demand, and a share of the repository each day."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from agentbox.adapters.runtime.journal import BestEffortJournal
from agentbox.api.backups.program import BackupProgram
from agentbox.api.backups.record import MAX_FAULTS, BackupRecord
from agentbox.api.metrics.backup_metrics import BackupMetrics
from agentbox.api.plan_source import PlanSource
from agentbox.contracts.backups import Snapshot
from agentbox.core.background.threads import run_in_thread
from agentbox.core.errors import AgentboxError
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import BackupUnusable

if TYPE_CHECKING:
    from agentbox.backup.archive.repository import ArchiveRepository

REPOSITORY: Final = "repository"  # in the place of an id: heads, and files of no snapshot
_NEVER: Final = ""
_AGAIN_SECONDS: Final = 2.0
_AGAIN: Final = "Try it again; the log of the program says more."


class SnapshotVerifier:
    """Compares archives with the hashes of their heads, which needs no key; a repository of restic
    is verified by the program `backup`, which has its password. Each result is kept in the record,
    and is one event `backup.verified`.
    """

    def __init__(
        self,
        paths: Paths,
        plans: PlanSource,
        program: BackupProgram,
        record: BackupRecord,
        metrics: BackupMetrics,
        journal: BestEffortJournal,
    ) -> None:
        self._paths, self._plans, self._program, self.record = paths, plans, program, record
        self._metrics, self._journal = metrics, journal
        metrics.damaged.set(record.damaged_count)

    async def heads(self) -> Sequence[Snapshot]:
        """Oldest first. Raises BackupUnusable."""
        if not self._paths.backups.is_dir():
            return ()
        try:
            return await run_in_thread(lambda: self._repository().list())
        except AgentboxError as error:
            raise _unusable(error) from error

    async def verify(self, id: str, principal: str) -> tuple[str, ...] | None:
        """The faults, each with its file; None for a snapshot that was removed meanwhile. Raises
        BackupUnusable, and OSError of the record.
        """
        try:
            if self._plans.current.backup.engine == "restic":
                faults = await self._faults_of_program(id)
            else:
                faults = await run_in_thread(lambda: self._faults(id))
        except AgentboxError as error:
            raise _unusable(error) from error
        if faults is not None:
            await self._note(id, faults, principal)
        return faults

    async def verify_share(self, percent: int, principal: str) -> None:
        """Reads all heads, and `percent` of the archives, those first that were read longest ago.
        An archive is read whole: a day that reads more than its share leaves less to the next
        ones, so that 100/percent days read everything once. Raises BackupUnusable, OSError.
        """
        if percent and self._plans.current.backup.engine == "restic":
            await self._verify_restic(principal)
            return
        known = self.record.known  # before the list: a snapshot that is made meanwhile is not gone
        heads = await self.heads()
        total = sum(head.size for head in heads)
        credit = min(self.record.credit + percent / 100, 1.0) if total and percent else 0.0
        if percent:
            await self._verify_heads(principal)
        for head in sorted(heads, key=lambda head: (self._read_at(head.id), head.time, head.id)):
            if credit <= 0:
                break
            credit -= head.size / total
            await self.verify(head.id, principal)
        gone = known - {REPOSITORY, *(head.id for head in heads)}
        await run_in_thread(lambda: self.record.checked(credit, gone))
        self._metrics.damaged.set(self.record.damaged_count)

    async def _verify_restic(self, principal: str) -> None:
        """One look at the whole repository: restic reads a share of it, by chance."""
        known = self.record.known
        heads = await self.heads()
        if any(head.engine == "restic" for head in heads):
            faults = await self._faults_of_program("")
            await self._note(REPOSITORY, faults or (), principal)
        gone = known - {REPOSITORY, *(head.id for head in heads)}
        await run_in_thread(lambda: self.record.checked(0.0, gone))
        self._metrics.damaged.set(self.record.damaged_count)

    async def _faults_of_program(self, snapshot: str) -> tuple[str, ...] | None:
        """As `_faults`; "" is the whole repository. Raises BackupUnusable, AgentboxError."""
        plan = self._plans.current
        request = {"do": "verify", "id": uuid7(), "snapshot": snapshot}
        result = await self._program.run(plan.backup.request(plan.name) | request)
        if result is None:
            raise BackupUnusable(
                "cannot verify: the program backup was killed", hint=_AGAIN, reason="killed"
            )
        if result["ok"]:
            return tuple(map(str, result["faults"]))
        if result["reason"] == "not-found":
            return None
        raise BackupUnusable(
            str(result["message"]), hint=str(result["hint"]), reason=str(result["reason"])
        )

    async def failed(self, message: str, principal: str) -> None:
        """The repository could not be verified."""
        self._metrics.failed("unverified")
        await self._event(REPOSITORY, (message,), principal)

    async def _verify_heads(self, principal: str) -> None:
        """A fault counts if it is found twice: a writer may publish meanwhile."""
        try:
            faults = await run_in_thread(lambda: self._repository().verify_heads())
            if faults:
                await asyncio.sleep(_AGAIN_SECONDS)
                again = await run_in_thread(lambda: self._repository().verify_heads())
                faults = [fault for fault in again if fault in faults]
        except AgentboxError as error:
            raise _unusable(error) from error
        if faults or self.record.faults(REPOSITORY):
            await self._note(REPOSITORY, tuple(map(str, faults)), principal)

    async def _note(self, id: str, faults: tuple[str, ...], principal: str) -> None:
        await run_in_thread(lambda: self.record.verified(id, faults))
        self._metrics.damaged.set(self.record.damaged_count)
        await self._event(id, faults, principal)

    async def _event(self, id: str, faults: tuple[str, ...], principal: str) -> None:
        data: JsonObj = {
            "id": id,
            "ok": not faults,
            "faults": list(faults[:MAX_FAULTS]),
            "by": principal,
        }
        await self._journal.record("backup.verified", data)

    def _faults(self, id: str) -> tuple[str, ...] | None:
        repository = self._repository()
        if faults := tuple(map(str, repository.verify(id))):
            heads = repository.list()
            return faults if any(head.id == id for head in heads) else None
        return faults

    def _read_at(self, id: str) -> str:
        at = self.record.read_at(id)
        return _NEVER if at is None else at.isoformat()

    def _repository(self) -> "ArchiveRepository":
        # Costs start time and memory, and few boxes list backups.
        from agentbox.backup.archive.repository import ArchiveRepository

        return ArchiveRepository(self._paths.backups, None)


def _unusable(error: AgentboxError) -> BackupUnusable:
    return BackupUnusable(
        error.message, hint=error.hint, reason=str(getattr(error, "reason", "unusable"))
    )
