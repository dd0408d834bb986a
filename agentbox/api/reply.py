"""What a handler answers."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """A whole answer. `body` is plain JSON data, a record, or bytes; None sends no body."""

    body: Any = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str = JSON


@dataclass(frozen=True)
class SentEvent:
    """One server-sent event: `data` is plain JSON data."""

    id: str
    event: str
    data: Any


@dataclass(frozen=True)
class EventStream:
    """An answer of server-sent events. `close` runs when the stream is over, whoever ended it."""

    events: AsyncIterator[SentEvent]
    close: Callable[[], None] = field(default=lambda: None)
