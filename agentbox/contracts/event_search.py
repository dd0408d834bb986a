"""What the API serves of the journal beside the slot: single records, searches, counts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Protocol

from agentbox.contracts.arguments import Cursor, PageSize
from agentbox.contracts.events import MAX_NAME, Event, Name
from agentbox.contracts.routes.operation import spread
from agentbox.core.records.bounds import bounded_text, item_count
from agentbox.core.records.wire import Record, record

MAX_SEARCH_TYPES = 64


@record
class EventSearch(Record):
    """All that is set must match. `words`: records with all of them, in type, names or data; a word
    that ends with * is a prefix. `types` are exact, or `prefix.*`. `trace_id` may be its first
    characters. `since` is included, `until` is not.
    """

    words: Annotated[str, bounded_text(maximum=MAX_NAME)] = ""
    types: Annotated[tuple[str, ...], item_count(maximum=MAX_SEARCH_TYPES)] = ()
    agent_id: Name = None
    session_id: Name = None
    trace_id: Annotated[str | None, bounded_text(minimum=8, maximum=32, pattern=r"^[0-9a-f]+$")] = (
        None
    )
    since: datetime | None = None
    until: datetime | None = None


@record
class FoundEvents(Record):
    """Events, newest first. Later ones than `indexed_seq` are not searched yet; `head_seq` is the
    newest.
    """

    items: tuple[Event, ...]
    next_cursor: str | None
    indexed_seq: int
    head_seq: int


@record
class EventStats(Record):
    """How many indexed events of each type the journal has."""

    events: int
    types: Mapping[str, int]
    indexed_seq: int
    head_seq: int


EVERYTHING = EventSearch()


class EventEndpoints(Protocol):
    """What the API serves beside the slot."""

    async def search(
        self,
        search: Annotated[EventSearch, spread()] = EVERYTHING,
        *,
        limit: PageSize = 100,
        cursor: Cursor | None = None,
    ) -> FoundEvents: ...

    async def stats(self) -> EventStats: ...

    async def show(self, seq: Annotated[str, bounded_text(pattern="^[0-9]+$")]) -> Event:
        """One event by its number."""
        ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (EventSearch, FoundEvents, EventStats)
}
