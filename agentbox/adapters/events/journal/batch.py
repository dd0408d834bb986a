"""The appends that one sync covers, and their futures."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.active_file import journal_failed
from agentbox.contracts.events import Event
from agentbox.core.slot_errors import AdapterError, disk_full_error, is_disk_full

Completed = list[tuple["AppendJob", tuple[Event, ...]]]


@dataclass(slots=True)
class AppendJob:
    """One append and its future. `box` is the box that delivered the records, "" for local ones.
    `discard_through` is set instead of drafts: sealed segments up to that record may be removed."""

    drafts: Sequence[chain.UnchainedRecord]
    future: "Future[tuple[Event, ...]]"
    box: str = ""
    discard_through: int = -1
    of_agent: bool = False  # appended by an agent, or about a call of one

    @property
    def size(self) -> int:
        """A lower bound of the encoded size in bytes."""
        return sum(
            len(member) for draft in self.drafts for member in draft.members.values()
        ) + 400 * len(self.drafts)


@dataclass(slots=True)
class Batch:
    """Lines that wait for their sync, and the end of the chain after them."""

    seq: int
    hash: str
    ts: datetime
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    keys: dict[bytes, Event] = field(default_factory=dict)
    # of the boxes with records in the batch
    origin_heads: dict[str, tuple[int, str]] = field(default_factory=dict)
    starts: list[tuple[int, int]] = field(default_factory=list)  # (seq, offset in the batch)

    def append(self, draft: chain.UnchainedRecord) -> Event:
        """Append a record to the chain."""
        seq = self.seq + 1
        line, digest = chain.encode_line(draft.members, seq, self.ts, self.hash)
        event = Event(**draft.event, seq=seq, ts=self.ts, prev_hash=self.hash, hash=digest)
        self.lines.append(line)
        self.starts.append((seq, self.size))
        self.keys[record_key(draft)] = event
        self.seq, self.hash, self.size = seq, digest, self.size + len(line)
        return event


def record_key(draft: chain.UnchainedRecord) -> bytes:
    """Return (source, id) as encoded in the line; for a delivered record its origin."""
    if (origin := draft.event.get("origin")) is not None:
        return chain.origin_key(origin)
    return draft.members["source"] + b',"id":' + draft.members["id"]


def is_same_record(event: Event, draft: chain.UnchainedRecord) -> bool:
    """Return whether both have the same name; unlike key numbers, without collisions."""
    origin = draft.event.get("origin")
    if origin is not None:
        return event.origin is not None and (event.origin.box, event.origin.seq) == (
            origin.box,
            origin.seq,
        )
    return event.origin is None and (event.source, event.id) == (
        draft.event["source"],
        draft.event["id"],
    )


def resolve_jobs(completed: Completed) -> None:
    """Resolve the futures of durable records, once."""
    for job, events in completed:
        job.future.set_result(events)
    completed.clear()


def fail_jobs(jobs: Sequence[AppendJob], error: BaseException) -> None:
    """Fail the futures that are not resolved yet."""
    for job in jobs:
        if not job.future.done():
            job.future.set_exception(error)


def append_error(error: OSError) -> AdapterError:
    """Return the error for a failed write."""
    if is_disk_full(error):
        return disk_full_error("append to the journal")
    return journal_failed(f"cannot append to the journal: {error.strerror}")
