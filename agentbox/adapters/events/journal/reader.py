"""Reads a journal by cursor, from disk, up to the last record that is durable."""

from dataclasses import dataclass

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.recovery import Journal
from agentbox.adapters.events.journal.segments import locate, open_at
from agentbox.adapters.runtime.paging import Room
from agentbox.contracts.events import Event, EventBatch, EventFilter
from agentbox.core.slot_errors import CursorExpired

MOST = 10_000  # records looked at in one call, so that a rare filter still ends in time


class _Found:
    """The records of a batch."""

    def __init__(self, limit: int) -> None:
        self._limit, self._room = limit, Room(limit)
        self.events: list[Event] = []
        self.full = False

    def add(self, event: Event, size: int) -> bool:
        """Whether it belongs into the batch; if not, nothing does any more."""
        if taken := self._room.takes(size):
            self.events.append(event)
        self.full = not taken or len(self.events) >= self._limit
        return taken


@dataclass(slots=True)
class Reader:
    """Reads what the writer has published. Any thread may use it."""

    journal: Journal

    def batch(self, since: int, limit: int, flt: EventFilter) -> EventBatch:
        """Up to `limit` matching records after `since`, fewer where they are large. Raises CursorExpired below the first
        record kept."""
        head = self.journal.head[0]
        if since < self.journal.first_seq - 1:
            raise self._expired(since + 1)
        found = _Found(limit)
        at, last = since, min(head, since + MOST)
        while at < last and not found.full:
            at = self._segment(at + 1, last, flt, found)
        return EventBatch(events=tuple(found.events), next_since=at, head_seq=head)

    def _expired(self, seq: int) -> CursorExpired:
        oldest = self.journal.first_seq
        return CursorExpired(f"cannot read from record {seq}: the oldest kept is {oldest}", oldest=oldest)

    def _segment(self, seq: int, last: int, flt: EventFilter, found: "_Found") -> int:
        """Reads on within one segment; returns the last record looked at."""
        segments = list(self.journal.segments)
        segment = locate(segments, seq)
        following = next((s.first_seq for s in segments if s.first_seq > segment.first_seq), last + 1)
        try:
            stream = open_at(segment, seq)
        except FileNotFoundError:
            if seq < self.journal.first_seq:  # it was removed meanwhile
                raise self._expired(seq) from None
            raise
        with stream:
            for number in range(seq, min(last + 1, following)):
                line = stream.readline()
                event = chain.event_of(line)
                if flt.matches(event) and not found.add(event, len(line)):
                    return number - 1
                if found.full:
                    return number
        return min(last, following - 1)
