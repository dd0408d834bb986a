"""What a handler answers."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentbox.contracts.orchestrator import Attachment

JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """A whole answer. `body` is plain JSON data, a record, or bytes; None sends no body. `length` is that of the body that
    GET would send, in the answer to a HEAD."""

    body: Any = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str = JSON
    length: int | None = None


@dataclass(frozen=True, kw_only=True)
class StreamedReply:
    """An answer whose body of `length` bytes comes in pieces."""

    chunks: AsyncIterator[bytes]
    length: int
    media_type: str
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ServerSentEvent:
    """One server-sent event: `data` is plain JSON data."""

    id: str
    event: str
    data: Any


@dataclass(frozen=True)
class EventStream:
    """An answer of server-sent events. `close` runs when the stream is over, whoever ended it. A reader that takes nothing
    for `stall_seconds` is cut; None: for `sse.STALL_SECONDS`."""

    events: AsyncIterator[ServerSentEvent]
    close: Callable[[], None] = field(default=lambda: None)
    stall_seconds: float | None = None


@dataclass(frozen=True)
class SocketReply:
    """An answer that is a WebSocket on what was attached; it is let go when the socket ends."""

    attachment: Attachment


AnyReply: TypeAlias = Reply | StreamedReply | EventStream | SocketReply
