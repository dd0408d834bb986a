"""An open journal: its writer, its readers, its lock, and the check of what opening left out."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from agentbox.adapters.events.journal import recovery
from agentbox.adapters.events.journal.chain import PendingRecord
from agentbox.adapters.events.journal.drafts import create_draft
from agentbox.adapters.events.journal.lock import WriterLock
from agentbox.adapters.events.journal.reader import JournalReader
from agentbox.adapters.events.journal.segments import damage_error
from agentbox.adapters.events.journal.verify import verify
from agentbox.adapters.events.journal.writer import JournalWriter
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.contracts.events import NewEvent, VerifyReport
from agentbox.core.slot_errors import AdapterError

SEGMENT_SIZE = 256 << 20
MAX_SIZE = 4 << 30
DISK_FULL = "the disk is full"
MIN_FREE_BYTES = 1 << 20  # bytes that the file system must have free
PAUSE_INTERVAL, PAUSE_SECONDS = (
    50,
    0.004,
)  # the check in the background rests, so that it takes a fifth of a core at most


class OpenJournal:
    """Made in a thread, since it reads the journal; `shut` blocks too. Raises what `recovery.load` and the lock raise."""

    def __init__(
        self, cfg: SlotConfig, deps: Deps, on_published: Callable[[], None], sync: Any
    ) -> None:
        cfg.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._cfg, self._deps = cfg, deps
        max_size = int(cfg.option("max_size", MAX_SIZE))
        deps.metrics.journal_max_bytes.set(max_size)
        self._record = cfg.record
        self._lock = WriterLock(cfg.directory / ".lock")
        self._lock.acquire()
        try:
            self.journal = recovery.load(cfg.directory, cfg.record)
            self.writer = JournalWriter(
                self.journal,
                deps.clock,
                self._create_self_draft,
                on_published,
                segment_size=int(cfg.option("segment_size", SEGMENT_SIZE)),
                max_size=max_size,
                sync=sync,
            )
            self.writer.start()
        except BaseException:
            self._lock.release()
            raise
        self.reader = JournalReader(self.journal)
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="events-reader")
        self.damage: AdapterError | None = None
        self.stopping = threading.Event()
        self._checked_records = 0
        self._check = threading.Thread(
            target=self._check_remaining, name="events-check", daemon=True
        )
        self._check.start()

    def close(self) -> None:
        """Writes what was queued and ends every thread."""
        self.stopping.set()
        self.pool.shutdown()
        self.writer.stop()
        self._check.join()
        with suppress(
            OSError
        ):  # then the record says less than the journal holds, and that is no loss
            self._save_record()
        self._lock.release()

    def _save_record(self) -> None:
        seq, digest = self.writer.durable
        if seq >= 0:
            self._record.write(seq=seq, hash=digest)

    def find_fault(self) -> str:
        """What is wrong, "" for nothing; measures its size, reads the newest record back, looks at the lock and at the room."""
        self._deps.metrics.journal_bytes.set(self.journal.size)
        if (failure := self.damage or self.writer.failure) is not None:
            return failure.message
        seq, digest = self.journal.head
        if not self._lock.is_held:
            return "the lock of the journal is gone"
        if seq >= self.journal.first_seq and self.writer.read_record(seq).hash != digest:
            return "the newest record does not read back"
        if self._record.due:
            with suppress(OSError):  # of a full disk, which is told below
                self._save_record()
        filesystem = os.statvfs(self._cfg.directory)
        if filesystem.f_bavail * filesystem.f_frsize < MIN_FREE_BYTES:
            return DISK_FULL
        return ""

    def verify(self, from_seq: int) -> VerifyReport:
        """Of everything up to the newest record now."""
        with self.writer.readers.reading():
            head = self.journal.head
            return verify(
                self._cfg.directory,
                anchor=head if head[0] >= self.journal.first_seq else None,
                from_seq=from_seq,
                until=head[0],
                stop=self.stopping.is_set,
            )

    def _create_self_draft(self, type: str, data: dict[str, Any]) -> PendingRecord:
        """A record of the journal about itself."""
        return create_draft(
            NewEvent(type=type, data=data), context.CORE, self._cfg.box, self._deps.ids()
        )

    def _check_remaining(self) -> None:
        """What opening left out; damage there takes the slot down until it is mended."""
        until = self.journal.checked_from - 1
        if until < self.journal.first_seq:
            return
        with self.writer.readers.reading():
            report = verify(self._cfg.directory, until=until, stop=self._pause_or_stop)
        if report.error is not None and not self.stopping.is_set():
            error = report.error
            recovery.record_damage(
                self._cfg.directory, error.file, error.line, error.seq, error.reason
            )
            self.damage = damage_error(
                self._cfg.directory / error.file, error.line, error.seq, error.reason
            )

    def _pause_or_stop(self) -> bool:
        self._checked_records += 1
        return (
            self.stopping.wait(PAUSE_SECONDS)
            if self._checked_records % PAUSE_INTERVAL == 0
            else self.stopping.is_set()
        )
