"""An open journal: its writer, its readers, its lock, and the check of what opening left out."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from agentbox.adapters.events.journal import recovery
from agentbox.adapters.events.journal.chain import Draft
from agentbox.adapters.events.journal.drafts import draft_of
from agentbox.adapters.events.journal.lock import WriterLock
from agentbox.adapters.events.journal.reader import Reader
from agentbox.adapters.events.journal.segments import damaged
from agentbox.adapters.events.journal.verify import verify
from agentbox.adapters.events.journal.writer import Writer
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.contracts.events import NewEvent, VerifyReport
from agentbox.core.slot_errors import AdapterError

SEGMENT_SIZE = 256 << 20
MAX_SIZE = 4 << 30
DISK_FULL = "the disk is full"
ROOM = 1 << 20  # bytes that the file system must have free
STRIDE, PAUSE = 50, 0.004  # the check in the background rests, so that it takes a fifth of a core at most


class Live:
    """Made in a thread, since it reads the journal; `shut` blocks too. Raises what `recovery.load` and the lock raise."""

    def __init__(self, cfg: SlotConfig, deps: Deps, published: Callable[[], None], sync: Any) -> None:
        cfg.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._cfg, self._deps = cfg, deps
        max_size = int(cfg.option("max_size", MAX_SIZE))
        deps.metrics.journal_max_bytes.set(max_size)
        self._record = cfg.record
        self._lock = WriterLock(cfg.directory / ".lock")
        self._lock.take()
        try:
            self.journal = recovery.load(cfg.directory, cfg.record)
            self.writer = Writer(
                self.journal, deps.clock, self._own, published,
                segment_size=int(cfg.option("segment_size", SEGMENT_SIZE)), max_size=max_size, sync=sync,
            )  # fmt: skip
            self.writer.start()
        except BaseException:
            self._lock.drop()
            raise
        self.reader = Reader(self.journal)
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="events-reader")
        self.damage: AdapterError | None = None
        self.stopping = threading.Event()
        self._steps = 0
        self._check = threading.Thread(target=self._check_the_rest, name="events-check", daemon=True)
        self._check.start()

    def shut(self) -> None:
        """Writes what was queued and ends every thread."""
        self.stopping.set()
        self.pool.shutdown()
        self.writer.stop()
        self._check.join()
        with suppress(OSError):  # then the record says less than the journal holds, and that is no loss
            self._keep_record()
        self._lock.drop()

    def _keep_record(self) -> None:
        seq, digest = self.writer.durable
        if seq >= 0:
            self._record.write(seq=seq, hash=digest)

    def complaint(self) -> str:
        """What is wrong, "" for nothing; measures its size, reads the newest record back, looks at the lock and at the room."""
        self._deps.metrics.journal_bytes.set(self.journal.size)
        if (failure := self.damage or self.writer.failure) is not None:
            return failure.message
        seq, digest = self.journal.head
        if not self._lock.held:
            return "the lock of the journal is gone"
        if seq >= self.journal.first_seq and self.writer.record(seq).hash != digest:
            return "the newest record does not read back"
        if self._record.due:
            with suppress(OSError):  # of a full disk, which is told below
                self._keep_record()
        room = os.statvfs(self._cfg.directory)
        if room.f_bavail * room.f_frsize < ROOM:
            return DISK_FULL
        return ""

    def verify(self, from_seq: int) -> VerifyReport:
        """Of everything up to the newest record now."""
        with self.writer.readers.reading():
            head = self.journal.head
            return verify(
                self._cfg.directory, anchor=head if head[0] >= self.journal.first_seq else None,
                from_seq=from_seq, until=head[0], stop=self.stopping.is_set,
            )  # fmt: skip

    def _own(self, type: str, data: dict[str, Any]) -> Draft:
        """A record of the journal about itself."""
        return draft_of(NewEvent(type=type, data=data), context.CORE, self._cfg.box, self._deps.ids())

    def _check_the_rest(self) -> None:
        """What opening left out; damage there takes the slot down until it is mended."""
        until = self.journal.checked_from - 1
        if until < self.journal.first_seq:
            return
        with self.writer.readers.reading():
            report = verify(self._cfg.directory, until=until, stop=self._rest)
        if report.error is not None and not self.stopping.is_set():
            error = report.error
            recovery.remember_damage(self._cfg.directory, error.file, error.line, error.seq, error.reason)
            self.damage = damaged(self._cfg.directory / error.file, error.line, error.seq, error.reason)

    def _rest(self) -> bool:
        self._steps += 1
        return self.stopping.wait(PAUSE) if self._steps % STRIDE == 0 else self.stopping.is_set()
