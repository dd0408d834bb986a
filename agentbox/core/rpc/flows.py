"""What a connection is sent unasked: items of a stream, chunks of an attached stdout; never beyond the credit given."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from agentbox.agents.runs.life import Life
from agentbox.agents.streams.attached import AttachedReader
from agentbox.agents.streams.reader import Reader
from agentbox.core.records.wire import to_wire
from agentbox.core.rpc import messages
from agentbox.core.slot_errors import AdapterError, BackendError, CursorExpired

BATCH = 64 << 10  # bytes of data a notification

Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class Flow:
    """One subscription. The client grants credit in bytes and gives it back as its reader takes the items."""

    def __init__(self, number: int, credit: int, send: Send) -> None:
        self.number = number
        self._credit, self._send = credit, send
        self._granted = asyncio.Event()
        self._attached: AttachedReader | None = None
        self._sent: deque[tuple[int, int]] = deque()  # bytes and last cursor of what its reader has not taken
        self._taken = 0  # bytes that were granted again, of the first of those
        self._under_way: deque[tuple[int, int]] = deque()  # what it has taken and may not have passed on, likewise
        self._passing = 0  # bytes of these

    def grant(self, size: int) -> None:
        """More may be sent: the reader has taken that much."""
        self._credit += size
        self._granted.set()
        if self._attached is None:
            return
        self._taken += size
        while self._sent and self._taken >= self._sent[0][0]:
            self._under_way.append(self._sent.popleft())
            self._taken -= self._under_way[-1][0]
            self._passing += self._under_way[-1][0]
        while self._under_way and self._passing - self._under_way[0][0] >= self._attached.margin:
            size, cursor = self._under_way.popleft()
            self._passing -= size
            self._attached.advance(cursor)

    async def pass_on(self, reader: Reader, *, follow: bool, attached: AttachedReader | None = None) -> None:
        """Items until nothing will follow, or without `follow` until what is kept now was sent. What `attached` has not
        taken is not dropped."""
        self._attached = attached
        async with self._told():
            while True:
                if items := reader.batch(await self._room()):
                    size = sum(len(item.data) for item in items)
                    if attached is not None:
                        self._sent.append((size, reader.position))
                    await self._give([item.to_wire() for item in items], size)
                elif reader.finished or not follow:
                    return
                else:
                    await reader.more()

    async def pass_items(self, items: AsyncIterator[tuple[Any, int]]) -> None:
        """Items on the wire and the bytes that each counts, until there are no more."""
        async with self._told(), contextlib.aclosing(items) as found:  # type: ignore[type-var]
            async for item, size in found:
                await self._room()
                await self._give([item], size)

    async def pass_stdout(self, life: Life, generation: int) -> None:
        """Chunks of one generation, from where the last holder stopped; ends with the generation. A cut is an error."""
        entry = life.entry
        async with self._told():
            reader = Reader(life.stream, entry.delivered, ("stdout",))
            while True:
                items = reader.batch(await self._room())
                if any(item.kind == "state" for item in items):
                    raise CursorExpired("cannot go on: output was dropped before it was read", oldest=reader.position)
                if chunks := [item.data for item in items if item.generation == generation]:
                    await self._give([to_wire(chunk) for chunk in chunks], sum(map(len, chunks)))
                    entry.delivered = reader.position
                elif entry.generation != generation or entry.pid is None:
                    return
                else:
                    await reader.more()

    @contextlib.asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        """Tells the client how the flow ended: well, or with an error."""
        try:
            yield
        except AdapterError as error:
            await self._event({"error": messages.error_of(error)})
        except OSError as error:
            why = BackendError(f"cannot read the output: {error.strerror}", slot="orchestrator", impl="local-process")
            await self._event({"error": messages.error_of(why)})
        else:
            await self._event({"end": True})

    async def _room(self) -> int:
        while self._credit <= 0:
            self._granted.clear()
            await self._granted.wait()
        return min(self._credit, BATCH)

    async def _give(self, items: list[Any], size: int) -> None:
        self._credit -= size
        await self._event({"items": items, "size": size})

    async def _event(self, what: Mapping[str, Any]) -> None:
        await self._send({"method": messages.EVENT, "params": {"subscription": self.number, **what}})
