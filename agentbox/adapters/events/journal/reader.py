"""Reads a journal by cursor from disk, up to the last published record."""

from dataclasses import dataclass

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.recovery import JournalState
from agentbox.adapters.events.journal.segments import find_segment, open_at
from agentbox.adapters.runtime.paging import PageBudget
from agentbox.contracts.events import Event, EventBatch, EventFilter
from agentbox.core.slot_errors import CursorExpired

MAX_SCANNED = 10_000  # records scanned per call, so that a rare filter returns in time


class _BatchBuilder:
    """Collects the records of a batch."""

    def __init__(self, limit: int) -> None:
        self._limit, self._budget = limit, PageBudget(limit)
        self.events: list[Event] = []
        self.full = False

    def add(self, event: Event, size: int) -> bool:
        """Return whether the event was added; after False nothing more is added."""
        if admitted := self._budget.admit(size):
            self.events.append(event)
        self.full = not admitted or len(self.events) >= self._limit
        return admitted


@dataclass(slots=True)
class JournalReader:
    """Reads the published records. Thread-safe."""

    journal: JournalState

    def batch(self, since: int, limit: int, filter: EventFilter) -> EventBatch:
        """Return up to `limit` matching records after `since`, fewer if they are large. Raises
        CursorExpired before the first kept record."""
        head = self.journal.head[0]
        if since < self.journal.first_seq - 1:
            raise self._cursor_expired(since + 1)
        builder = _BatchBuilder(limit)
        position, last = since, min(head, since + MAX_SCANNED)
        while position < last and not builder.full:
            position = self._read_segment(position + 1, last, filter, builder)
        return EventBatch(events=tuple(builder.events), next_since=position, head_seq=head)

    def _cursor_expired(self, seq: int) -> CursorExpired:
        oldest = self.journal.first_seq
        return CursorExpired(
            f"cannot read from record {seq}: the oldest record is {oldest}", oldest=oldest
        )

    def _read_segment(
        self, seq: int, last: int, filter: EventFilter, builder: "_BatchBuilder"
    ) -> int:
        """Read within one segment; return the last scanned record."""
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
                if filter.matches(event) and not builder.add(event, len(line)):
                    return number - 1
                if builder.full:
                    return number
        return min(last, next_first - 1)
