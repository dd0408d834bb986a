"""Reads a journal by cursor, from disk, up to the last record that is durable."""

from dataclasses import dataclass

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.recovery import JournalState
from agentbox.adapters.events.journal.segments import find_segment, open_at
from agentbox.adapters.runtime.paging import PageBudget
from agentbox.contracts.events import Event, EventBatch, EventFilter
from agentbox.core.slot_errors import CursorExpired

MAX_SCANNED = 10_000  # records looked at in one call, so that a rare filter still ends in time


class _BatchBuilder:
    """The records of a batch."""

    def __init__(self, limit: int) -> None:
        self._limit, self._budget = limit, PageBudget(limit)
        self.events: list[Event] = []
        self.full = False

    def add(self, event: Event, size: int) -> bool:
        """Whether it belongs into the batch; if not, nothing does any more."""
        if admitted := self._budget.admit(size):
            self.events.append(event)
        self.full = not admitted or len(self.events) >= self._limit
        return admitted


@dataclass(slots=True)
class JournalReader:
    """Reads what the writer has published. Any thread may use it."""

    journal: JournalState

    def batch(self, since: int, limit: int, flt: EventFilter) -> EventBatch:
        """Up to `limit` matching records after `since`, fewer where they are large. Raises CursorExpired below the first
        record kept."""
        head = self.journal.head[0]
        if since < self.journal.first_seq - 1:
            raise self._cursor_expired(since + 1)
        builder = _BatchBuilder(limit)
        position, last = since, min(head, since + MAX_SCANNED)
        while position < last and not builder.full:
            position = self._read_segment(position + 1, last, flt, builder)
        return EventBatch(events=tuple(builder.events), next_since=position, head_seq=head)

    def _cursor_expired(self, seq: int) -> CursorExpired:
        oldest = self.journal.first_seq
        return CursorExpired(
            f"cannot read from record {seq}: the oldest kept is {oldest}", oldest=oldest
        )

    def _read_segment(self, seq: int, last: int, flt: EventFilter, builder: "_BatchBuilder") -> int:
        """Reads on within one segment; returns the last record looked at."""
        segments = list(self.journal.segments)
        segment = find_segment(segments, seq)
        next_first = next(
            (s.first_seq for s in segments if s.first_seq > segment.first_seq), last + 1
        )
        try:
            stream = open_at(segment, seq)
        except FileNotFoundError:
            if seq < self.journal.first_seq:  # it was removed meanwhile
                raise self._cursor_expired(seq) from None
            raise
        with stream:
            for number in range(seq, min(last + 1, next_first)):
                line = stream.readline()
                event = chain.decode_event(line)
                if flt.matches(event) and not builder.add(event, len(line)):
                    return number - 1
                if builder.full:
                    return number
        return min(last, next_first - 1)
