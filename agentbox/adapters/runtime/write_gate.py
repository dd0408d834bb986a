"""Admits calls that write, until a cut closes it: one moment at which none is under way."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager
from contextvars import ContextVar

# A call that another one makes belongs to it, also in a task of its own: it was admitted with it.
_admitted: ContextVar[bool] = ContextVar("agentbox_admitted_write", default=False)


class WritesUnderWay(Exception):
    """Calls that write did not end in time. `count` of them."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} writes are under way")
        self.count = count


class WriteGate:
    """Of the slots of one program, in one event loop. Open unless a block of `closed` runs."""

    def __init__(self) -> None:
        self._under_way = 0
        self._open = asyncio.Event()
        self._open.set()
        self._idle = asyncio.Event()

    @asynccontextmanager
    async def closed(self, seconds: float) -> AsyncGenerator[None]:
        """No call that writes is under way during the block; those of the block itself are. Later
        ones wait. Raises WritesUnderWay if those under way take longer than `seconds`; only one
        block may run at a time.
        """
        self._open.clear()
        token = _admitted.set(True)
        try:
            try:
                async with asyncio.timeout(seconds):
                    while self._under_way:
                        self._idle.clear()
                        await self._idle.wait()
            except TimeoutError:
                raise WritesUnderWay(self._under_way) from None
            yield
        finally:
            self._open.set()
            _admitted.reset(token)

    def ticket(self) -> "WriteTicket":
        """For one call."""
        return WriteTicket(self)

    async def enter(self) -> None:
        """Wait until the gate is open, and count a call as under way."""
        while not self._open.is_set():
            await self._open.wait()
        self._under_way += 1

    def leave(self) -> None:
        """Count it as ended."""
        self._under_way -= 1
        if not self._under_way:
            self._idle.set()


class WriteTicket:
    """The admission of one call, ended with its block. With a streamed body it begins at the end of
    the body: a slow upload holds up no cut.
    """

    def __init__(self, gate: WriteGate) -> None:
        self._gate = gate
        self._token = None if _admitted.get() else _admitted.set(False)
        self._entered = False

    async def enter(self) -> None:
        """Wait for admission, unless the call belongs to an admitted one."""
        if self._token is None:
            return
        if not self._entered:
            await self._gate.enter()
            self._entered = True
        _admitted.set(True)

    async def admit_at_end(self, body: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        """The body; the call is admitted before its end is seen."""
        async for chunk in body:
            yield chunk
        await self.enter()

    def __enter__(self) -> "WriteTicket":
        return self

    def __exit__(self, *_failure: object) -> None:
        try:
            if self._entered:
                self._gate.leave()
        finally:
            if self._token is not None:
                _admitted.reset(self._token)
