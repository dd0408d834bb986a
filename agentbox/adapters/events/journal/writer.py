"""The one thread that writes a journal: appends that wait together share a sync."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.active import ActiveFile, broken
from agentbox.adapters.events.journal.batch import Batch, Done, Job, give, key_of, refusal, same, tell
from agentbox.adapters.events.journal.lock import WholeReaders
from agentbox.adapters.events.journal.prune import drop_delivered
from agentbox.adapters.events.journal.received import EVERY as MARK_EVERY
from agentbox.adapters.events.journal.received import fresh, save_marks
from agentbox.adapters.events.journal.recovery import KEYS, Journal, key_number
from agentbox.adapters.events.journal.segments import (
    EVERY,
    SEALED,
    Segment,
    day_of,
    locate,
    next_name,
    note_checkpoint,
    open_at,
    sync_directory,
    write_seal,
)
from agentbox.adapters.runtime.adapter import Clock
from agentbox.adapters.runtime.shares import agents_part
from agentbox.contracts.events import MAX_DATA, Event
from agentbox.core.slot_errors import AdapterError, QuotaExceeded

LARGEST = MAX_DATA + (8 << 10)  # bytes of the longest line, and some
GROUP = 256  # appends that share a sync
WARN_AT = 0.8  # of max_size
INTERVAL = 1.0  # seconds between two syncs of fsync = "interval"
Sync = Literal["group", "always", "interval"]


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
        self._file = ActiveFile()
        self._sealing: Segment | None = None  # its last record is the sealing one, its seal is not written
        self._warned = journal.size >= WARN_AT * max_size
        self._bug: AdapterError | None = None
        self.durable = journal.head  # the newest record that is on disk whatever becomes of the machine
        self._marked = journal.head[0]  # the record up to which `origins.json` knows every box
        self.readers = WholeReaders()
        self._thread = threading.Thread(target=self._run, name="events-writer", daemon=True)

    def start(self) -> None:
        """Opens the active segment and starts the thread. Raises OSError."""
        if self._journal.active is not None:
            self._file.open(self._journal.active.path)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Queues an append."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Writes what waits and ends the thread."""
        self._jobs.put(None)
        self._thread.join()

    def forget(self, seq: int) -> None:
        """Removes, soon, the sealed segments that end at or before that record, unless somebody reads the whole journal."""
        segments = self._journal.segments
        if len(segments) > 1 and segments[1].first_seq <= seq + 1:
            self._jobs.put(Job((), Future(), forget=seq))

    @property
    def full(self) -> bool:
        """Whether the largest record might not fit any more."""
        return self._journal.size + LARGEST > self._max_size

    @property
    def refuses_agents(self) -> AdapterError | None:
        """Why nothing that agents do can be written down any more, though the box still can; None while it can."""
        cap = agents_part(self._max_size)
        return self._full(cap) if self._journal.size + LARGEST > cap else None

    def _full(self, cap: int) -> QuotaExceeded:
        whose = "" if cap == self._max_size else ", the part of it that agents may fill"
        return QuotaExceeded(
            f"cannot append to the journal: it has reached {cap} bytes{whose}", hint="raise adapters.events.max_size",
            limit="journal", observed=self._journal.size, cap=cap, config_path="adapters.events.max_size",
        )  # fmt: skip

    @property
    def failure(self) -> AdapterError | None:
        """Why nothing can be appended until the journal is opened anew; None while it can."""
        return self._file.failure or self._bug

    def record(self, seq: int) -> Event:
        """A record that is on disk."""
        with open_at(locate(self._journal.segments, seq), seq) as stream:
            return chain.event_of(stream.readline())

    def _run(self) -> None:
        ended = False
        while not ended:
            jobs, ended = self._take()
            for part in [jobs] if self._sync != "always" else [[job] for job in jobs]:
                self._append(part)
            if self._file.dirty and (ended or time.monotonic() - self._file.synced >= INTERVAL):
                with suppress(OSError):  # `failure` tells every later append
                    self._sync_file()
        self._mark()
        self._file.close()

    def _take(self) -> tuple[list[Job], bool]:
        """The appends that wait now, and whether the end came up; none when it is time for the interval's sync."""
        try:
            first = self._jobs.get(timeout=INTERVAL if self._file.dirty else None)
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
            tell(jobs, self.failure or refusal(error))
        except BaseException as error:  # noqa: BLE001 - the futures carry it to the callers
            self._bug = broken("cannot append to the journal: the writer failed inside")
            tell(jobs, error)
        self._warn()

    def _write(self, jobs: Sequence[Job]) -> None:
        done: Done = []
        batch = self._batch()
        for job in jobs:
            if job.forget >= 0:
                self._forget(job.forget)
                continue
            try:
                self._admit(batch, job)
                batch = self._placed(batch, done)
                drafts = self._fresh(batch, job) if job.box else job.drafts
            except AdapterError as error:
                job.future.set_exception(error)
                continue
            # One whose (source, id) is known already gets the record that has it.
            done.append((job, tuple(self._known(batch, draft) or batch.link(draft) for draft in drafts)))
        self._commit(batch)
        give(done)

    def _batch(self) -> Batch:
        seq, last = self._journal.head
        return Batch(seq, last, self._journal.last_ts)

    def _admit(self, batch: Batch, job: Job) -> None:
        """Raises what keeps the journal from growing."""
        if self.failure is not None:
            raise self.failure
        cap = agents_part(self._max_size) if job.of_agent else self._max_size
        if self._journal.size + batch.size + max(job.size, LARGEST) > cap:
            raise self._full(cap)

    def _placed(self, batch: Batch, done: Done) -> Batch:
        """The batch with the time of its next record, on the segment of that day; a new one where it must roll."""
        active, now = self._journal.active, max(batch.ts, self._clock.now())
        if active is None or active.day != day_of(now) or self._file.size + batch.size >= self._segment_size:
            self._commit(batch)
            give(done)
            self._roll(now)
            batch = self._batch()
        batch.ts = now
        return batch

    def _fresh(self, batch: Batch, job: Job) -> Sequence[chain.Draft]:
        """What is new of a delivery, with what it lacks. Raises OriginConflict."""
        known = batch.marks.get(job.box, self._journal.marks.get(job.box))
        drafts, mark = fresh(job.drafts, known, lambda draft: self._known(batch, draft), self._own)
        if mark is not None:
            batch.marks[job.box] = mark
        return drafts

    def _known(self, batch: Batch, draft: chain.Draft) -> Event | None:
        key = key_of(draft)
        if (event := batch.keys.get(key)) is not None:
            return event
        seq = self._recent.get(key_number(key))
        if seq is None or seq < self._journal.first_seq:
            return None
        event = self.record(seq)
        return event if same(event, draft) else None

    def _commit(self, batch: Batch) -> None:
        """Writes and syncs, then moves the end of the chain. Raises OSError, and then the end is where it was."""
        segment = self._journal.active
        if not batch.lines or segment is None:
            return
        before = self._file.size
        self._file.write(b"".join(batch.lines))
        if self._sync != "interval":
            self._file.sync()
            self.durable = batch.seq, batch.hash
        self._journal.size += batch.size
        self._journal.last_ts = batch.ts
        for seq, offset in batch.starts:
            if (seq - segment.first_seq) % EVERY == 0:
                note_checkpoint(segment, seq, before + offset)
        self._journal.head = batch.seq, batch.hash
        self._journal.marks.update(batch.marks)
        if batch.seq - self._marked >= MARK_EVERY:
            self._mark()
        self._remember(batch)
        self._published()

    def _remember(self, batch: Batch) -> None:
        for key, event in batch.keys.items():
            self._recent[key_number(key)] = event.seq
        while len(self._recent) > KEYS:
            del self._recent[next(iter(self._recent))]

    def _roll(self, moment: datetime) -> None:
        """Seals the active segment, if there is one, and begins the next."""
        old = self._journal.active
        if old is not None and self._file.size:
            self._seal(old)
        self._file.close()
        if old is not None and not old.seal.exists():  # it never had a record
            self._journal.segments.remove(old)
            old.path.unlink()
        self._journal.active = None
        last = self._journal.segments[-1].path if self._journal.segments else None
        seq, prev = self._journal.head
        new = Segment(self._journal.directory / next_name(day_of(moment), last), seq + 1, prev)
        self._file.open(new.path)
        sync_directory(self._journal.directory)
        self._journal.segments.append(new)
        self._journal.active = new

    def _seal(self, segment: Segment) -> None:
        """Its last record has the time of the one before it, so that it belongs to the segment's day."""
        if self._sealing is not segment:
            seq, tail = self._journal.head
            batch = self._batch()
            data = {"first_seq": segment.first_seq, "count": seq - segment.first_seq + 1, "tail_hash": tail}
            batch.link(self._own(SEALED, data))
            self._commit(batch)
            self._sealing = segment
        if self._file.dirty:
            self._sync_file()
        self._mark()
        write_seal(segment, *self._journal.head)

    def _mark(self) -> None:
        """Opening reads the newest records and derives the rest from here, so that a failure now is none."""
        if self._journal.marks and self._marked < self._journal.head[0]:
            with suppress(OSError):
                save_marks(self._journal.directory, self._journal.marks)
                self._marked = self._journal.head[0]

    def _sync_file(self) -> None:
        self._file.sync()
        self.durable = self._journal.head

    def _forget(self, seq: int) -> None:
        """Readers find the new beginning before the old files go."""
        with self.readers.none() as nobody, suppress(OSError):
            if nobody:
                drop_delivered(self._journal, seq)

    def _warn(self) -> None:
        """Once, when the journal has grown to 80 % of what it may."""
        if self._warned or self._journal.size < WARN_AT * self._max_size:
            return
        self._warned = True
        draft = self._own("journal.size.warning", {"observed": self._journal.size, "cap": self._max_size})
        self._append([Job([draft], Future())])
