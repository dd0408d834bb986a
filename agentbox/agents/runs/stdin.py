"""The write end of an agent's standard input."""

import asyncio
import os


class StdinClosed(Exception):
    """The agent has closed its stdin, or it was closed here."""


class Stdin:
    """Owns `fd`. Writes wait for the agent to read; one writer at a time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._write_lock = asyncio.Lock()
        self._blocked: asyncio.Future[None] | None = None
        self._taken = 0  # bytes, from the start
        os.set_blocking(fd, False)

    async def write(self, data: bytes, at: int | None = None) -> None:
        """Return once the pipe has accepted all data. `at`: the place of the first byte, counted
        from the start; what was written before is left out, so that a repeated call writes nothing
        twice. Raises StdinClosed, and ValueError if bytes before that place are missing.
        """
        async with self._write_lock:
            if at is not None and at > self._taken:
                raise ValueError(f"bytes {self._taken} to {at} are missing")
            view = memoryview(data)[0 if at is None else self._taken - at :]
            while view:
                if self._fd < 0:
                    raise StdinClosed
                try:
                    count = os.write(self._fd, view)
                except BlockingIOError:
                    await self._wait_writable()
                except BrokenPipeError as error:
                    raise StdinClosed from error
                else:
                    self._taken += count
                    view = view[count:]

    def close(self) -> None:
        """The agent reads end of file; a waiting write fails. Idempotent."""
        if self._fd < 0:
            return
        asyncio.get_running_loop().remove_writer(self._fd)
        os.close(self._fd)
        self._fd = -1
        if self._blocked is not None and not self._blocked.done():
            self._blocked.set_result(None)

    async def _wait_writable(self) -> None:
        loop = asyncio.get_running_loop()
        self._blocked = future = loop.create_future()
        fd = self._fd
        loop.add_writer(fd, _set_done, future)
        try:
            await future
        finally:
            if self._fd == fd:
                loop.remove_writer(fd)


def _set_done(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
