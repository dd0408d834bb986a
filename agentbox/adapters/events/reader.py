"""Reads a journal by cursor, from disk, up to the last record that is durable."""

from dataclasses import dataclass

from agentbox.adapters.errors import CursorExpired
from agentbox.adapters.events import chain
from agentbox.adapters.events.contract import Event, EventBatch, EventFilter
from agentbox.adapters.events.recovery import Journal
from agentbox.adapters.events.segments import locate, open_at

MOST = 10_000  # records looked at in one call, so that a rare filter still ends in time


@dataclass(slots=True)
class Reader:
    """Reads what the writer has published. Any thread may use it."""

    journal: Journal

    def batch(self, since: int, limit: int, flt: EventFilter) -> EventBatch:
        """Up to `limit` matching records after `since`. Raises CursorExpired below the first record kept."""
        head = self.journal.head[0]
        if since < self.journal.first_seq - 1:
            raise self._expired(since + 1)
        found: list[Event] = []
        at, last = since, min(head, since + MOST)
        while at < last and len(found) < limit:
            at = self._segment(at + 1, last, limit, flt, found)
        return EventBatch(events=tuple(found), next_since=at, head_seq=head)

    def _expired(self, seq: int) -> CursorExpired:
        oldest = self.journal.first_seq
        return CursorExpired(f"cannot read from record {seq}: the oldest kept is {oldest}", oldest=oldest)

    def _segment(self, seq: int, last: int, limit: int, flt: EventFilter, found: list[Event]) -> int:
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
                event = chain.event_of(stream.readline())
                if flt.matches(event):
                    found.append(event)
                if len(found) >= limit:
                    return number
        return min(last, following - 1)
