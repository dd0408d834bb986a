"""Copies an agent's pipe to its stream at a limited rate. Excess output, or output without space,
waits in the pipe."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable

RATE = 32 << 20  # bytes a second
_BURST = 4 << 20
_CHUNK = 64 << 10  # the size of a pipe


class Pump:
    """Reads `fd`, which it owns, and passes every chunk to `store`. Pauses while the stream is
    `full`; call `resume` when there may be space again."""

    def __init__(
        self, fd: int, store: Callable[[bytes], object], full: Callable[[], bool] = lambda: False
    ) -> None:
        self._fd, self._store, self._full = fd, store, full
        self._blocked = False  # until there is space
        self._loop = asyncio.get_running_loop()
        self._allowance, self._last_refill = float(_BURST), self._loop.time()
        self._pause_timer: asyncio.TimerHandle | None = None
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._on_readable)

    def finish(self) -> None:
        """Read the rest of the pipe and close it, after every process of the tree has ended.
        Idempotent.

        Data that other processes write later, through /proc, is ignored.
        """
        remaining = 0 if self._fd < 0 else _bytes_in_pipe(self._fd)
        while remaining > 0 and (count := self._read_chunk()):
            remaining -= count
        self._close()

    def discard_rest(self) -> None:
        """Read what is in the pipe, then drop what is written later, so that a process which still
        has the pipe is neither blocked nor ended by it. `finish` closes the pipe."""
        remaining = 0 if self._fd < 0 else _bytes_in_pipe(self._fd)
        while remaining > 0 and (count := self._read_chunk()):
            remaining -= count
        self._store, self._full = _drop, _never_full
        self.resume()

    @property
    def is_closed(self) -> bool:
        """Whether no process has the pipe any more, or it was closed here."""
        return self._fd < 0

    def resume(self) -> None:
        """Continue after the stream was full. Idempotent."""
        if self._blocked and self._fd >= 0:
            self._blocked = False
            self._loop.add_reader(self._fd, self._on_readable)

    def _on_readable(self) -> None:
        if self._full():
            self._blocked = True
            self._loop.remove_reader(self._fd)
            return
        count = self._read_chunk()
        if count == 0:
            self._close()
        elif count is not None and (delay := self._throttle_delay()) > 0:
            self._loop.remove_reader(self._fd)
            self._pause_timer = self._loop.call_later(delay, self._unpause)

    def _read_chunk(self) -> int | None:
        """Bytes read; 0 at the end of the pipe, None if there is no data now."""
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return None
        if data:
            self._allowance -= len(data)
            self._store(data)
        return len(data)

    def _throttle_delay(self) -> float:
        now = self._loop.time()
        self._allowance = min(_BURST, self._allowance + (now - self._last_refill) * RATE)
        self._last_refill = now
        return -self._allowance / RATE

    def _unpause(self) -> None:
        self._pause_timer = None
        self._loop.add_reader(self._fd, self._on_readable)

    def _close(self) -> None:
        if self._fd < 0:
            return
        if self._pause_timer is not None:
            self._pause_timer.cancel()
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._fd = -1


def _drop(_data: bytes) -> None:
    """Stores nothing."""


def _never_full() -> bool:
    return False


def _bytes_in_pipe(fd: int) -> int:
    """Bytes in a pipe now (FIONREAD, pipe(7))."""
    count: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]
    return count
