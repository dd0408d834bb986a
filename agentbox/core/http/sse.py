"""Writes server-sent events, with comments as keep-alive. Ends when the reader stalls or the box
drains.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import structlog
from starlette.types import Receive, Send

from agentbox.core.slot_errors import AdapterError

PING_SECONDS = 15.0
STALL_SECONDS = 30.0
RETRY_MS = 1000
PING = b": \n\n"
_log = structlog.get_logger()


@dataclass(frozen=True)
class ServerSentEvent:
    """One server-sent event: `data` is plain JSON data."""

    id: str
    event: str
    data: Any


class EventStreamCut(Exception):
    """The server ended the stream before its last event; the reader resumes by its last id."""


def encode_event(event: ServerSentEvent) -> bytes:
    """Encodes one event. The data is a single line of JSON, so no line break can end it early."""
    data = json.dumps(event.data, separators=(",", ":"), ensure_ascii=False)
    return f"id: {event.id}\nevent: {event.event}\ndata: {data}\n\n".encode()


async def write_events(
    events: AsyncIterator[ServerSentEvent],
    send: Send,
    receive: Receive,
    closing: asyncio.Event,
    request_id: str,
    stall_seconds: float | None = None,
) -> None:
    """Sends each event until the source ends. Raises EventStreamCut if the box drains, the reader
    stalls or the source fails.
    """
    disconnected = asyncio.ensure_future(_disconnected(receive))
    draining = asyncio.ensure_future(closing.wait())
    writer = _Writer(
        send, {disconnected, draining}, STALL_SECONDS if stall_seconds is None else stall_seconds
    )
    try:
        await writer.write(f"retry: {RETRY_MS}\n\n".encode())
        await _pump(events, writer)
    except AdapterError as error:
        await writer.write(encode_event(ServerSentEvent("", "error", error.to_problem(request_id))))
        raise EventStreamCut from error
    except TimeoutError as error:
        _log.warning("stream closed: its reader stalled", request_id=request_id)
        raise EventStreamCut from error
    finally:
        disconnected.cancel()
        draining.cancel()


async def _pump(events: AsyncIterator[ServerSentEvent], writer: "_Writer") -> None:
    next_event = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            await asyncio.wait(
                {next_event, *writer.stop_signals},
                timeout=PING_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if writer.ended:
                raise EventStreamCut
            if not next_event.done():
                await writer.write(PING)
                continue
            event = next_event.result()
            if event is None:
                return
            await writer.write(encode_event(event))
            next_event = asyncio.ensure_future(anext(events, None))
    finally:
        next_event.cancel()
        await asyncio.wait({next_event})


class _Writer:
    """Writes to one reader, until one of `stop_signals` is done."""

    def __init__(
        self, send: Send, stop_signals: set[asyncio.Future[Any]], stall_seconds: float
    ) -> None:
        self._send, self.stop_signals, self._stall_seconds = send, stop_signals, stall_seconds

    @property
    def ended(self) -> bool:
        return any(signal.done() for signal in self.stop_signals)

    async def write(self, data: bytes) -> None:
        """Raises TimeoutError if the reader stalls, EventStreamCut if a stop signal arrives
        meanwhile.
        """
        sending = asyncio.ensure_future(
            self._send({"type": "http.response.body", "body": data, "more_body": True})
        )
        try:
            await asyncio.wait(
                {sending, *self.stop_signals},
                timeout=self._stall_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not sending.done():
                raise EventStreamCut if self.ended else TimeoutError
            sending.result()
        finally:
            sending.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
