"""From an agent's pipe to its stream, at a bounded rate: a flood, or what its reader has no room for, waits in its own pipe."""

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
    """Reads `fd`, which it owns from now on, and gives every chunk to `store`. While the stream is `full` it reads nothing;
    `resume` says that there may be room again."""

    def __init__(
        self, fd: int, store: Callable[[bytes], object], full: Callable[[], bool] = lambda: False
    ) -> None:
        self._fd, self._store, self._full = fd, store, full
        self._blocked = False  # for room
        self._loop = asyncio.get_running_loop()
        self._allowance, self._last_refill = float(_BURST), self._loop.time()
        self._pause_timer: asyncio.TimerHandle | None = None
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._on_readable)

    def finish(self) -> None:
        """Takes what is left in the pipe and closes it. For when no process of the tree lives. Idempotent.

        What others write into it from now on, who opened it by /proc, is nobody's output and not waited for.
        """
        remaining = 0 if self._fd < 0 else _bytes_in_pipe(self._fd)
        while remaining > 0 and (count := self._read_chunk()):
            remaining -= count
        self._close()

    def resume(self) -> None:
        """Goes on where the stream was full. Idempotent."""
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
        """Bytes taken; 0 at the end of the pipe, None when there is nothing now."""
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


def _bytes_in_pipe(fd: int) -> int:
    """Bytes in a pipe now (FIONREAD, pipe(7))."""
    count: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]
    return count
