"""The results of a handler."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentbox.contracts.orchestrator import Attachment

JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """A complete response. `body` is plain JSON data, a record, or bytes; None sends no body.
    `length` is that of the GET body, in the response to a HEAD.
    """

    body: Any = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str = JSON
    length: int | None = None


@dataclass(frozen=True, kw_only=True)
class StreamedReply:
    """A response whose body of `length` bytes is streamed."""

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
    """A response of server-sent events. `close` runs at the end of the stream. A reader that
    accepts nothing for `stall_seconds` is disconnected; None: after `sse.STALL_SECONDS`.
    """

    events: AsyncIterator[ServerSentEvent]
    close: Callable[[], None] = field(default=lambda: None)
    stall_seconds: float | None = None


@dataclass(frozen=True)
class SocketReply:
    """A WebSocket on an attachment, which is detached when the socket ends."""

    attachment: Attachment


AnyReply: TypeAlias = Reply | StreamedReply | EventStream | SocketReply
