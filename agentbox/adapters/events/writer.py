"""The one thread that writes a journal: appends that wait together share a sync."""

import errno
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from agentbox.adapters.base import Clock
from agentbox.adapters.errors import AdapterError, BackendError, QuotaExceeded
from agentbox.adapters.events import chain
from agentbox.adapters.events.contract import MAX_DATA, Event
from agentbox.adapters.events.recovery import KEYS, Journal, key_number
from agentbox.adapters.events.segments import (
    EVERY,
    SEALED,
    Segment,
    day_of,
    locate,
    next_name,
    open_at,
    sync_directory,
    write_seal,
)  # fmt: skip
from agentbox.canonical import canonical_json

LARGEST = MAX_DATA + (8 << 10)  # bytes of the longest line, and some
GROUP = 256  # appends that share a sync
WARN_AT = 0.8  # of max_size
INTERVAL = 1.0  # seconds between two syncs of fsync = "interval"
Sync = Literal["group", "always", "interval"]


@dataclass(slots=True)
class Job:
    """One append: drafts, and who waits for them."""

    drafts: Sequence[chain.Draft]
    future: "Future[tuple[Event, ...]]"


@dataclass(slots=True)
class Batch:
    """What one sync will cover: bytes, and the state of the chain after them."""

    seq: int
    hash: str
    ts: datetime
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    keys: dict[bytes, Event] = field(default_factory=dict)
    checkpoints: list[tuple[int, int]] = field(default_factory=list)  # (seq, offset)


class Writer:
    """Owns the active segment and the end of the chain. `published` is called in this thread after each sync."""

    def __init__(
        self, journal: Journal, clock: Clock, own: Callable[[str, dict[str, Any]], chain.Draft], published: Callable[[], None], *,
        segment_size: int, max_size: int, sync: Sync,
    ) -> None:  # fmt: skip
        self._journal, self._clock, self._own, self._published = journal, clock, own, published
        self._segment_size, self._max_size, self._sync = segment_size, max_size, sync
        self._recent = {key_number(key): seq for key, seq in journal.keys}
        journal.keys.clear()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._fd = -1
        self._fd_size = 0
        self._dirty = False
        self._synced = time.monotonic()
        self._sealing: Segment | None = None  # its last record is the sealing one, its seal is not written
        self._warned = journal.size >= WARN_AT * max_size
        self.failure: AdapterError | None = None
        self._thread = threading.Thread(target=self._run, name="events-writer", daemon=True)

    def start(self) -> None:
        """Opens the active segment and starts the thread. Raises OSError."""
        if self._journal.active is not None:
            self._open_segment(self._journal.active)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Queues an append."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Writes what waits and ends the thread."""
        self._jobs.put(None)
        self._thread.join()

    @property
    def full(self) -> bool:
        """Whether the largest record might not fit any more."""
        return self._journal.size + LARGEST > self._max_size

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._take()
            for part in [batch] if self._sync != "always" else [[job] for job in batch]:
                self._append(part)
            if self._dirty and (ended or time.monotonic() - self._synced >= INTERVAL):
                with suppress(OSError):  # `failure` tells every later append
                    self._sync_now()
        if self._fd >= 0:
            os.close(self._fd)

    def _take(self) -> tuple[list[Job], bool]:
        """The appends that wait now; an empty list when it is time for the interval's sync."""
        try:
            first = self._jobs.get(timeout=INTERVAL if self._dirty else None)
        except queue.Empty:
            return [], False
        jobs: list[Job] = []
        with suppress(queue.Empty):
            while first is not None:
                if first.future.set_running_or_notify_cancel():
                    jobs.append(first)
                if len(jobs) >= GROUP:
                    return jobs, False
                first = self._jobs.get_nowait()
            return jobs, True
        return jobs, False

    def _append(self, jobs: Sequence[Job]) -> None:
        """Writes a batch; on failure nothing of it remains, and every waiter is told."""
        try:
            self._write(jobs)
        except OSError as error:
            _tell(jobs, self.failure or _refusal(error))
        except BaseException as error:  # noqa: BLE001 - the futures carry it to the callers
            self.failure = _backend("cannot append to the journal: the writer failed inside")
            _tell(jobs, error)
        self._warn()

    def _write(self, jobs: Sequence[Job]) -> None:
        done: list[tuple[Job, tuple[Event, ...]]] = []
        batch = self._batch()
        for job in jobs:
            try:
                batch = self._room(batch, job, done)
            except AdapterError as error:
                job.future.set_exception(error)
                continue
            done.append((job, self._place(batch, job.drafts)))
        self._commit(batch)
        _give(done)

    def _batch(self) -> Batch:
        seq, last = self._journal.head
        return Batch(seq, last, self._journal.last_ts)

    def _room(self, batch: Batch, job: Job, done: list[tuple[Job, tuple[Event, ...]]]) -> Batch:
        """Makes sure of an open segment for the batch's next record. Raises what keeps the journal from growing."""
        if self.failure is not None:
            raise self.failure
        wanted = sum(len(part) for draft in job.drafts for part in draft.members.values()) + 400 * len(job.drafts)
        if self._journal.size + batch.size + max(wanted, LARGEST) > self._max_size:
            raise QuotaExceeded(
                f"cannot append to the journal: it has reached {self._max_size} bytes", hint="raise adapters.events.max_size",
                limit="journal", observed=self._journal.size, cap=self._max_size, config_path="adapters.events.max_size",
            )  # fmt: skip
        active, before = self._journal.active, batch.ts
        batch.ts = max(batch.ts, self._clock.now())
        if active is not None and active.day == day_of(batch.ts) and self._fd_size + batch.size < self._segment_size:
            return batch
        moment = batch.ts
        if batch.lines:
            batch.ts = before
            self._commit(batch)
            _give(done)
        self._roll(moment)
        batch = self._batch()
        batch.ts = moment
        return batch

    def _place(self, batch: Batch, drafts: Sequence[chain.Draft]) -> tuple[Event, ...]:
        """Gives each record its place. One whose (source, id) is known already gets the record that has it."""
        return tuple(self._known(batch, draft) or self._link(batch, draft) for draft in drafts)

    def _link(self, batch: Batch, draft: chain.Draft) -> Event:
        segment = self._journal.active
        assert segment is not None
        seq = batch.seq + 1
        line, digest = chain.link(draft.members, seq, batch.ts, batch.hash)
        if (seq - segment.first_seq) % EVERY == 0:
            batch.checkpoints.append((seq, self._fd_size + batch.size))
        event = Event(**draft.event, seq=seq, ts=batch.ts, prev_hash=batch.hash, hash=digest)
        batch.lines.append(line)
        batch.seq, batch.hash, batch.size = seq, digest, batch.size + len(line)
        batch.keys[key_of(draft)] = event
        return event

    def _known(self, batch: Batch, draft: chain.Draft) -> Event | None:
        key = key_of(draft)
        if (event := batch.keys.get(key)) is not None:
            return event
        seq = self._recent.get(key_number(key))
        if seq is None:
            return None
        event = self.record(seq)
        return event if (event.source, event.id) == (draft.event["source"], draft.event["id"]) else None

    def record(self, seq: int) -> Event:
        """A record that is on disk."""
        with open_at(locate(self._journal.segments, seq), seq) as stream:
            return chain.event_of(stream.readline())

    def _commit(self, batch: Batch) -> None:
        """Writes and syncs. Raises OSError after having undone what it wrote."""
        if not batch.lines:
            return
        segment = self._journal.active
        assert segment is not None
        try:
            write_all(self._fd, b"".join(batch.lines))
        except OSError:
            os.ftruncate(self._fd, self._fd_size)
            raise
        self._dirty = True
        if self._sync != "interval":
            self._sync_now()
        self._fd_size += batch.size
        self._journal.size += batch.size
        for seq, offset in batch.checkpoints:
            note_checkpoint(segment, seq, offset)
        for key, event in batch.keys.items():
            self._recent[key_number(key)] = event.seq
        while len(self._recent) > KEYS:
            del self._recent[next(iter(self._recent))]
        self._journal.last_ts = batch.ts
        self._journal.head = batch.seq, batch.hash
        self._published()

    def _sync_now(self) -> None:
        """A sync that fails leaves unknown what is on disk (Linux drops the dirty pages): the writer stops for good."""
        self._dirty = False
        self._synced = time.monotonic()
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            self.failure = _backend(f"cannot sync the journal: {error.strerror}")
            raise

    def _roll(self, moment: datetime) -> None:
        """Seals the active segment, if there is one, and begins the next."""
        old = self._journal.active
        if old is not None and self._fd_size:
            self._seal(old)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if old is not None and not old.seal.exists():  # it never had a record
            self._journal.segments.remove(old)
            old.path.unlink()
        last = self._journal.segments[-1].path if self._journal.segments else None
        seq, prev = self._journal.head
        new = Segment(self._journal.directory / next_name(day_of(moment), last), seq + 1, prev)
        self._open_segment(new)
        sync_directory(self._journal.directory)
        self._journal.segments.append(new)
        self._journal.active = new

    def _seal(self, segment: Segment) -> None:
        """Its last record has the time of the one before it, so that it belongs to the segment's day."""
        if self._sealing is not segment:
            seq, tail = self._journal.head
            batch = self._batch()
            data = {"first_seq": segment.first_seq, "count": seq - segment.first_seq + 1, "tail_hash": tail}
            self._link(batch, self._own(SEALED, data))
            self._commit(batch)
            self._sealing = segment
        if self._dirty:
            self._sync_now()
        write_seal(segment, *self._journal.head)

    def _open_segment(self, segment: Segment) -> None:
        self._fd = os.open(segment.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._fd_size = os.fstat(self._fd).st_size

    def _warn(self) -> None:
        """Once, when the journal has grown to 80 % of what it may."""
        if self._warned or self._journal.size < WARN_AT * self._max_size:
            return
        self._warned = True
        draft = self._own("journal.size.warning", {"observed": self._journal.size, "cap": self._max_size})
        self._append([Job([draft], Future())])


def _give(done: list[tuple[Job, tuple[Event, ...]]]) -> None:
    """Tells those whose records are durable."""
    for job, events in done:
        job.future.set_result(events)
    done.clear()


def _tell(jobs: Sequence[Job], error: BaseException) -> None:
    """Tells those who were told nothing yet."""
    for job in jobs:
        if not job.future.done():
            job.future.set_exception(error)


def _refusal(error: OSError) -> AdapterError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return QuotaExceeded(
            "cannot append to the journal: the disk is full", hint="free space on the volume of /var/lib/agentbox",
            limit="disk", observed=None, cap=None, config_path="",
        )  # fmt: skip
    return _backend(f"cannot append to the journal: {error.strerror}")


def key_of(draft: chain.Draft) -> bytes:
    """(source, id) as the line spells them."""
    return draft.members["source"] + b',"id":' + draft.members["id"]


def note_checkpoint(segment: Segment, seq: int, offset: int) -> None:
    """Appends to the `.idx` file, which is not synced: it can be derived."""
    if seq > segment.first_seq:
        segment.offsets.append(offset)
    fd = os.open(segment.index, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, canonical_json({"seq": seq, "offset": offset}) + b"\n")
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Every byte, or OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _backend(detail: str) -> BackendError:
    return BackendError(detail, slot="events", impl="local-jsonl")
