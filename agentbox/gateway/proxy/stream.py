"""A byte stream over an asyncio transport with flow control and half-close."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

_MAX_BUFFERED: Final = 256 << 10  # unread bytes before reading is paused


class ProxyStream(asyncio.Protocol):
    """An asyncio protocol. `on_connected` is called once the transport is connected."""

    def __init__(self, on_connected: "Callable[[ProxyStream], None] | None" = None) -> None:
        self._on_connected = on_connected
        self._received: list[bytes] = []
        self._size = 0
        self._eof = self._closed = self._paused = False
        self._readable, self._writable = asyncio.Event(), asyncio.Event()
        self._writable.set()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        if self._on_connected is not None:
            self._on_connected(self)

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._size += len(data)
        self._readable.set()
        if self._size > _MAX_BUFFERED and not self._paused and self.transport is not None:
            self._paused = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        self._eof = True
        self._readable.set()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._eof = self._closed = True
        self._readable.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed."""
        return self._closed

    @property
    def at_eof(self) -> bool:
        """Whether the peer has closed its side."""
        return self._eof

    async def read(self) -> bytes:
        """Returns all received bytes, waiting for at least one; b"" at the end."""
        await self._readable.wait()
        data = self._received[0] if len(self._received) == 1 else b"".join(self._received)
        self._received.clear()
        self._size = 0
        if not self._eof:
            self._readable.clear()
        if self._paused and not self._closed and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()
        return data

    def unread(self, data: bytes) -> None:
        """Puts bytes back: the next `read` returns them first."""
        self._received.insert(0, data)
        self._size += len(data)
        self._readable.set()

    async def write(self, data: bytes) -> None:
        """Returns when the write buffer has capacity. Raises ConnectionResetError if the connection
        is closed."""
        if self._closed or self.transport is None:
            raise ConnectionResetError
        self.transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    def write_eof(self) -> None:
        """Closes the writing side; reading continues."""
        if self.transport is not None and not self._closed:
            with contextlib.suppress(OSError):
                self.transport.write_eof()

    def close(self) -> None:
        """Closes both directions after flushing."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Closes both directions immediately."""
        if self.transport is not None:
            self.transport.abort()
