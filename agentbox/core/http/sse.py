"""Writes server-sent events: comments while nothing happens, an end when the reader stalls or the box drains."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import structlog

from agentbox.api.http.reply import SentEvent
from agentbox.core.slot_errors import AdapterError

PING_SECONDS = 15.0
STALL_SECONDS = 30.0
RETRY_MS = 1000
PING = b": \n\n"
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
_log = structlog.get_logger()


class Cut(Exception):
    """The stream was ended by us before its last event; the reader resumes by its last id."""


def encode(event: SentEvent) -> bytes:
    """One event: data is one line of JSON, so no line break can end it early."""
    data = json.dumps(event.data, separators=(",", ":"), ensure_ascii=False)
    return f"id: {event.id}\nevent: {event.event}\ndata: {data}\n\n".encode()


async def write_events(
    events: AsyncIterator[SentEvent], send: Send, receive: Callable[[], Awaitable[Mapping[str, Any]]],
    closing: asyncio.Event, request_id: str, stall_seconds: float | None = None,
) -> None:  # fmt: skip
    """Sends each event until the source ends. Raises Cut when the box drains, the reader stalls or the source fails."""
    gone = asyncio.ensure_future(_disconnected(receive))
    stop = asyncio.ensure_future(closing.wait())
    writer = _Writer(send, {gone, stop}, STALL_SECONDS if stall_seconds is None else stall_seconds)
    try:
        await writer.write(f"retry: {RETRY_MS}\n\n".encode())
        await _pump(events, writer)
    except AdapterError as error:
        await writer.write(encode(SentEvent("", "error", error.to_problem(request_id))))
        raise Cut from error
    except TimeoutError as error:
        _log.warning("stream closed: its reader stalled", request_id=request_id)
        raise Cut from error
    finally:
        gone.cancel()
        stop.cancel()


async def _pump(events: AsyncIterator[SentEvent], writer: "_Writer") -> None:
    upcoming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            await asyncio.wait({upcoming, *writer.ends}, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if writer.over:
                raise Cut
            if not upcoming.done():
                await writer.write(PING)
                continue
            event = upcoming.result()
            if event is None:
                return
            await writer.write(encode(event))
            upcoming = asyncio.ensure_future(anext(events, None))
    finally:
        upcoming.cancel()
        await asyncio.wait({upcoming})


class _Writer:
    """To one reader, until one of `ends`."""

    def __init__(self, send: Send, ends: set[asyncio.Future[Any]], stall_seconds: float) -> None:
        self._send, self.ends, self._stall_seconds = send, ends, stall_seconds

    @property
    def over(self) -> bool:
        return any(end.done() for end in self.ends)

    async def write(self, data: bytes) -> None:
        """Raises TimeoutError when the reader takes nothing for too long, Cut when it is over meanwhile."""
        sending = asyncio.ensure_future(self._send({"type": "http.response.body", "body": data, "more_body": True}))
        try:
            await asyncio.wait({sending, *self.ends}, timeout=self._stall_seconds, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise Cut if self.over else TimeoutError
            sending.result()
        finally:
            sending.cancel()


async def _disconnected(receive: Callable[[], Awaitable[Mapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
