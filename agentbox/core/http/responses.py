"""Responses beyond Starlette's: records, problems, bodies in pieces, server-sent events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import structlog
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from agentbox.core.http.problems import MEDIA_TYPE, internal_problem, problem_headers
from agentbox.core.http.sse import STALL_SECONDS, EventStreamCut, ServerSentEvent, write_events
from agentbox.core.records.wire import to_json
from agentbox.core.slot_errors import AdapterError

JSON, STREAM = "application/json", "text/event-stream"
_log = structlog.get_logger()


def header_list(*pairs: tuple[str, str]) -> Headers:
    """Headers of a response, in which a name may occur repeatedly."""
    return Headers(
        raw=[(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    )


class RecordResponse(JSONResponse):
    """A record, a page of records, or plain JSON data."""

    def render(self, content: Any) -> bytes:
        return to_json(content).encode()


def problem_response(error: AdapterError, request_id: str) -> Response:
    """The problem document of an error (RFC 9457)."""
    return RecordResponse(
        error.to_problem(request_id),
        error.status,
        headers=dict(problem_headers(error)),
        media_type=MEDIA_TYPE,
    )


def internal_error(request_id: str) -> Response:
    """The problem document of a bug, without details."""
    return RecordResponse(internal_problem(request_id), 500, media_type=MEDIA_TYPE)


class PiecesResponse(Response):
    """A body of `length` bytes in pieces. An incomplete body aborts the connection, so that the
    client notices.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        length: int,
        status_code: int = 200,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._pieces, self.status_code, self.background = pieces, status_code, None
        self.init_headers(header_list(*headers, ("content-length", str(length))))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        try:
            async for piece in self._pieces:
                async with asyncio.timeout(STALL_SECONDS):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except BaseException as error:
            scope["state"]["abort"]()
            if not isinstance(error, Exception):
                raise
            _log.warning(
                "response body not sent completely",
                request_id=scope["state"]["request_id"],
                reason=type(error).__name__,
            )


class EventStreamResponse(Response):
    """Server-sent events until the source ends, the reader stalls or `closing` is set: the last two
    abort the connection, and the reader resumes by its last id. `close` runs at the end of the
    stream.
    """

    media_type = STREAM

    def __init__(
        self,
        events: AsyncIterator[ServerSentEvent],
        closing: asyncio.Event,
        close: Callable[[], None] | None = None,
        stall_seconds: float | None = None,
    ) -> None:
        """`stall_seconds` without progress disconnect a reader; None: `sse.STALL_SECONDS`."""
        self._events, self._closing, self._close = events, closing, close
        self._stall_seconds = stall_seconds
        self.status_code, self.background = 200, None
        self.init_headers(header_list(("content-type", STREAM)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            await write_events(
                self._events, send, receive, self._closing, state["request_id"], self._stall_seconds
            )
            await send({"type": "http.response.body", "body": b""})
        except EventStreamCut:
            state["abort"]()
        finally:
            if self._close is not None:
                self._close()
