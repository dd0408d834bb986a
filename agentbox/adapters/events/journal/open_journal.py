"""An open journal: writer, reader, lock, and the background check of older records."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from agentbox.adapters.events.journal import recovery
from agentbox.adapters.events.journal.chain import UnchainedRecord
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
from agentbox.manifest.slot_options import JournalOptions

DISK_FULL = "the disk is full"
MIN_FREE_BYTES = 1 << 20  # required free space of the file system
# limits the background check to a fifth of a core
PAUSE_INTERVAL, PAUSE_SECONDS = (
    50,
    0.004,
)


class OpenJournal:
    """Create it in a thread, because it reads the journal; `close` blocks too. Raises the errors of
    `recovery.load` and of the lock."""

    def __init__(
        self, cfg: SlotConfig[JournalOptions], deps: Deps, on_published: Callable[[], None]
    ) -> None:
        cfg.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._cfg, self._deps = cfg, deps
        options = cfg.options
        deps.metrics.journal_max_bytes.set(options.max_size)
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
                segment_size=options.segment_size,
                max_size=options.max_size,
                sync=options.fsync,
            )
            self.writer.start()
        except BaseException:
            self._lock.close()
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
        """Write queued appends and end all threads."""
        self.stopping.set()
        self.pool.shutdown()
        self.writer.stop()
        self._check.join()
        with suppress(OSError):  # the store record is then behind the journal, which is no loss
            self._save_record()
        self._lock.close()

    def _save_record(self) -> None:
        seq, digest = self.writer.durable
        if seq >= 0:
            self._record.write(seq=seq, hash=digest)

    def find_fault(self) -> str:
        """Return a description of the fault, "" if none. Updates the size metric, reads back the
        newest record, checks lock and free space."""
        self._deps.metrics.journal_bytes.set(self.journal.size)
        if (failure := self.damage or self.writer.failure) is not None:
            return failure.message
        seq, digest = self.journal.head
        if not self._lock.is_locked:
            return "the lock file of the journal was removed"
        if seq >= self.journal.first_seq and self.writer.read_record(seq).hash != digest:
            return "the newest record cannot be read back"
        if self._record.due:
            with suppress(OSError):  # of a full disk, reported below
                self._save_record()
        filesystem = os.statvfs(self._cfg.directory)
        if filesystem.f_bavail * filesystem.f_frsize < MIN_FREE_BYTES:
            return DISK_FULL
        return ""

    def verify(self, from_seq: int) -> VerifyReport:
        """Verify all records up to the current newest one."""
        with self.writer.readers.reading():
            head = self.journal.head
            return verify(
                self._cfg.directory,
                anchor=head if head[0] >= self.journal.first_seq else None,
                from_seq=from_seq,
                until=head[0],
                stop=self.stopping.is_set,
            )

    def _create_self_draft(self, type: str, data: dict[str, Any]) -> UnchainedRecord:
        """Return a draft of a record about the journal itself."""
        return create_draft(
            NewEvent(type=type, data=data), context.CORE, self._cfg.box, self._deps.ids()
        )

    def _check_remaining(self) -> None:
        """Check the records skipped at opening. Damage takes the slot down until it is repaired."""
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
