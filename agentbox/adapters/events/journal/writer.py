"""The thread that writes a journal. Concurrent appends share a sync."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.active_file import journal_failed
from agentbox.adapters.events.journal.batch import (
    AppendJob,
    Batch,
    Completed,
    append_error,
    fail_jobs,
    is_same_record,
    record_key,
    resolve_jobs,
)
from agentbox.adapters.events.journal.foreign_records import new_drafts
from agentbox.adapters.events.journal.lock import ReaderCount
from agentbox.adapters.events.journal.prune import remove_sealed
from agentbox.adapters.events.journal.recovery import MAX_KEYS, JournalState, key_number
from agentbox.adapters.events.journal.segment_appender import SegmentAppender
from agentbox.adapters.events.journal.segments import day_of, find_segment, open_at
from agentbox.adapters.runtime.adapter import Clock
from agentbox.adapters.runtime.agent_quotas import agents_share
from agentbox.contracts.events import MAX_DATA, Event
from agentbox.core.slot_errors import AdapterError, QuotaExceeded

MAX_LINE_BYTES = MAX_DATA + (8 << 10)  # upper bound of the longest line
MAX_GROUP = 256  # appends that share a sync
WARN_RATIO = 0.8  # of max_size
SYNC_INTERVAL = 1.0  # seconds between two syncs of fsync = "interval"
Sync = Literal["group", "always", "interval"]


class JournalWriter:
    """Forms batches of the queued appends and resolves their futures. `on_published` is called in
    this thread after each commit."""

    def __init__(
        self,
        journal: JournalState,
        clock: Clock,
        create_self_draft: Callable[[str, dict[str, Any]], chain.UnchainedRecord],
        on_published: Callable[[], None],
        *,
        segment_size: int,
        max_size: int,
        sync: Sync,
    ) -> None:
        self._journal, self._clock, self._create_self_draft, self._on_published = (
            journal,
            clock,
            create_self_draft,
            on_published,
        )
        self._segment_size, self._max_size, self._sync = segment_size, max_size, sync
        self._recent = {key_number(key): seq for key, seq in journal.keys}
        journal.keys.clear()
        self._jobs: queue.SimpleQueue[AppendJob | None] = queue.SimpleQueue()
        self._appender = SegmentAppender(
            journal, create_self_draft, self._publish, sync_each=sync != "interval"
        )
        self._warned = journal.size >= WARN_RATIO * max_size
        self._internal_error: AdapterError | None = None
        self.readers = ReaderCount()
        self._thread = threading.Thread(target=self._run, name="events-writer", daemon=True)

    def start(self) -> None:
        """Open the active segment and start the thread. Raises OSError."""
        self._appender.open()
        self._thread.start()

    def put(self, job: AppendJob) -> None:
        """Queue an append."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Write queued appends and end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def discard_through(self, seq: int) -> None:
        """Queue the removal of sealed segments up to this record. Skipped while a reader needs all
        files."""
        segments = self._journal.segments
        if len(segments) > 1 and segments[1].first_seq <= seq + 1:
            self.discard(seq)

    def discard(self, seq: int) -> Future[tuple[Event, ...]]:
        """The same, with the future of its end."""
        future: Future[tuple[Event, ...]] = Future()
        self._jobs.put(AppendJob((), future, discard_through=seq))
        return future

    @property
    def is_full(self) -> bool:
        """Whether the largest record might not fit."""
        return self._journal.size + MAX_LINE_BYTES > self._max_size

    @property
    def agent_refusal(self) -> AdapterError | None:
        """The error for agents while the box can still append; None if agents can append."""
        cap = agents_share(self._max_size)
        return self._full_error(cap) if self._journal.size + MAX_LINE_BYTES > cap else None

    def _full_error(self, cap: int) -> QuotaExceeded:
        detail = "" if cap == self._max_size else ", the share of agents"
        return QuotaExceeded(
            f"cannot append to the journal: it has reached {cap} bytes{detail}",
            hint="raise adapters.events.max_size",
            limit="journal",
            observed=self._journal.size,
            cap=cap,
            config_path="adapters.events.max_size",
        )

    @property
    def failure(self) -> AdapterError | None:
        """The error of all appends until the journal is reopened; None if appends work."""
        return self._appender.file.failure or self._internal_error

    @property
    def durable(self) -> tuple[int, str]:
        """The newest record that is synced to disk."""
        return self._appender.durable

    def read_record(self, seq: int) -> Event:
        """Read a record from disk."""
        with open_at(find_segment(self._journal.segments, seq), seq) as stream:
            return chain.decode_event(stream.readline())

    def _run(self) -> None:
        ended = False
        while not ended:
            jobs, ended = self._next_jobs()
            for group in [jobs] if self._sync != "always" else [[job] for job in jobs]:
                self._append(group)
            file = self._appender.file
            if file.dirty and (ended or time.monotonic() - file.synced >= SYNC_INTERVAL):
                with suppress(OSError):  # `failure` is raised by every later append
                    self._appender.sync()
        self._appender.close()

    def _next_jobs(self) -> tuple[list[AppendJob], bool]:
        """Return the queued appends, and whether to stop; none when the interval's sync is due."""
        try:
            first = self._jobs.get(timeout=SYNC_INTERVAL if self._appender.file.dirty else None)
        except queue.Empty:
            return [], False
        jobs: list[AppendJob] = []
        with suppress(queue.Empty):
            while first is not None:
                if first.future.set_running_or_notify_cancel():
                    jobs.append(first)
                if len(jobs) >= MAX_GROUP:
                    return jobs, False
                first = self._jobs.get_nowait()
            return jobs, True
        return jobs, False

    def _append(self, jobs: Sequence[AppendJob]) -> None:
        """Write a batch; on failure nothing remains of it and all futures fail."""
        try:
            self._write(jobs)
        except OSError as error:
            fail_jobs(jobs, self.failure or append_error(error))
        except BaseException as error:  # noqa: BLE001 - the futures carry it to the callers
            self._internal_error = journal_failed(
                "cannot append to the journal: internal error of the writer"
            )
            fail_jobs(jobs, error)
        self._warn()

    def _write(self, jobs: Sequence[AppendJob]) -> None:
        completed: Completed = []
        batch = self._appender.new_batch()
        for job in jobs:
            if job.discard_through >= 0:
                self._discard(job.discard_through)
                job.future.set_result(())
                continue
            try:
                self._admit(batch, job)
                batch = self._prepare_batch(batch, completed)
                drafts = self._new_drafts(batch, job) if job.box else job.drafts
            except AdapterError as error:
                job.future.set_exception(error)
                continue
            # A draft with a known (source, id) returns the existing record.
            completed.append(
                (
                    job,
                    tuple(
                        self._find_existing(batch, draft) or batch.append(draft) for draft in drafts
                    ),
                )
            )
        self._appender.commit(batch)
        resolve_jobs(completed)

    def _admit(self, batch: Batch, job: AppendJob) -> None:
        """Raises the error that prevents the append."""
        if self.failure is not None:
            raise self.failure
        cap = agents_share(self._max_size) if job.of_agent else self._max_size
        if self._journal.size + batch.size + max(job.size, MAX_LINE_BYTES) > cap:
            raise self._full_error(cap)

    def _prepare_batch(self, batch: Batch, completed: Completed) -> Batch:
        """Return the batch with the time of its next record, on the segment of that day; a new
        batch after a segment roll."""
        active, now = self._journal.active, max(batch.ts, self._clock.now())
        if (
            active is None
            or active.day != day_of(now)
            or self._appender.file.size + batch.size >= self._segment_size
        ):
            self._appender.commit(batch)
            resolve_jobs(completed)
            self._appender.roll(now)
            batch = self._appender.new_batch()
        batch.ts = now
        return batch

    def _new_drafts(self, batch: Batch, job: AppendJob) -> Sequence[chain.UnchainedRecord]:
        """Return the new drafts of a delivery, with gap records. Raises OriginConflict."""
        head = batch.origin_heads.get(job.box, self._journal.origin_heads.get(job.box))
        drafts, new_head = new_drafts(
            job.drafts,
            head,
            lambda draft: self._find_existing(batch, draft),
            self._create_self_draft,
        )
        if new_head is not None:
            batch.origin_heads[job.box] = new_head
        return drafts

    def _find_existing(self, batch: Batch, draft: chain.UnchainedRecord) -> Event | None:
        key = record_key(draft)
        if (event := batch.keys.get(key)) is not None:
            return event
        seq = self._recent.get(key_number(key))
        if seq is None or seq < self._journal.first_seq:
            return None
        event = self.read_record(seq)
        return event if is_same_record(event, draft) else None

    def _publish(self, batch: Batch) -> None:
        """Cache the keys of a committed batch."""
        for key, event in batch.keys.items():
            self._recent[key_number(key)] = event.seq
        while len(self._recent) > MAX_KEYS:
            del self._recent[next(iter(self._recent))]
        self._on_published()

    def _discard(self, seq: int) -> None:
        """The anchor is written before the old files are removed."""
        with self.readers.exclusive() as no_readers, suppress(OSError):
            if no_readers:
                remove_sealed(self._journal, seq)

    def _warn(self) -> None:
        """Append a warning once when the journal reaches 80 % of its maximum size."""
        if self._warned or self._journal.size < WARN_RATIO * self._max_size:
            return
        self._warned = True
        draft = self._create_self_draft(
            "journal.size.warning", {"observed": self._journal.size, "cap": self._max_size}
        )
        self._append([AppendJob([draft], Future())])
