"""Server side of subscriptions: items of a stream, limited by the client's credit."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from agentbox.core.rpc import messages
from agentbox.core.slot_errors import AdapterError, BackendError

BATCH = 64 << 10  # bytes of data per notification

Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class Item(Protocol):
    """One item of a stream; the size of `data` counts against the credit."""

    @property
    def data(self) -> bytes: ...

    def to_wire(self) -> dict[str, Any]: ...


class ItemSource(Protocol):
    """Reads a stream from a cursor; `position` is the cursor of the last item read."""

    position: int

    def batch(self, size: int) -> Sequence[Item]:
        """The next items, about `size` bytes of data; empty if there are none now. Raises OSError
        and CursorExpired."""
        ...

    @property
    def finished(self) -> bool: ...

    async def wait_for_items(self) -> None: ...


class ConsumptionObserver(Protocol):
    """Where the cursor is reported up to which the reader has consumed the stream. The last
    `margin` bytes are reported later."""

    margin: int

    def advance(self, position: int) -> None: ...


class ServerSubscription:
    """One subscription. The client grants credit in bytes and returns it as its reader consumes
    items.
    """

    def __init__(self, number: int, credit: int, send: Send) -> None:
        self.number = number
        self._credit, self._send = credit, send
        self._credit_available = asyncio.Event()
        self._attached: ConsumptionObserver | None = None
        self._unacknowledged: deque[tuple[int, int]] = (
            deque()
        )  # bytes and last cursor of unacknowledged batches
        self._acknowledged_bytes = 0  # bytes acknowledged of the first of those
        self._in_transit: deque[tuple[int, int]] = (
            deque()
        )  # batches acknowledged, but possibly not passed on yet; bytes and cursor
        self._in_transit_bytes = 0  # sum of their bytes

    def add_credit(self, size: int) -> None:
        """Adds credit: the reader has consumed that many bytes."""
        self._credit += size
        self._credit_available.set()
        if self._attached is None:
            return
        self._acknowledged_bytes += size
        while self._unacknowledged and self._acknowledged_bytes >= self._unacknowledged[0][0]:
            self._in_transit.append(self._unacknowledged.popleft())
            self._acknowledged_bytes -= self._in_transit[-1][0]
            self._in_transit_bytes += self._in_transit[-1][0]
        while (
            self._in_transit
            and self._in_transit_bytes - self._in_transit[0][0] >= self._attached.margin
        ):
            size, cursor = self._in_transit.popleft()
            self._in_transit_bytes -= size
            self._attached.advance(cursor)

    async def send_stream(
        self, reader: ItemSource, *, follow: bool, attached: ConsumptionObserver | None = None
    ) -> None:
        """Sends items until the stream ends, or without `follow` until the current end. Output that
        `attached` has not consumed is not dropped.
        """
        self._attached = attached
        async with self.report_end():
            while True:
                if items := reader.batch(await self.wait_for_credit()):
                    size = sum(len(item.data) for item in items)
                    if attached is not None:
                        self._unacknowledged.append((size, reader.position))
                    await self.send_batch([item.to_wire() for item in items], size)
                elif reader.finished or not follow:
                    return
                else:
                    await reader.wait_for_items()

    async def send_items(self, items: AsyncIterator[tuple[Any, int]]) -> None:
        """Sends items of the wire form, with the bytes that each counts, until there are
        no more.
        """
        closing = contextlib.aclosing(items)  # type: ignore[type-var]
        async with self.report_end(), closing as stream:
            async for item, size in stream:
                await self.wait_for_credit()
                await self.send_batch([item], size)

    @contextlib.asynccontextmanager
    async def report_end(self) -> AsyncIterator[None]:
        """Reports the end of the subscription to the client: normal, or with an error."""
        try:
            yield
        except AdapterError as error:
            await self._notify({"error": messages.encode_error(error)})
        except OSError as error:
            failure = BackendError(
                f"cannot read the output: {error.strerror}",
                slot="orchestrator",
                impl="local-process",
            )
            await self._notify({"error": messages.encode_error(failure)})
        else:
            await self._notify({"end": True})

    async def wait_for_credit(self) -> int:
        """Waits until the client has granted credit; returns the bytes of the next batch."""
        while self._credit <= 0:
            self._credit_available.clear()
            await self._credit_available.wait()
        return min(self._credit, BATCH)

    async def send_batch(self, items: list[Any], size: int) -> None:
        """Sends items of the wire form, which use `size` bytes of the credit."""
        self._credit -= size
        await self._notify({"items": items, "size": size})

    async def _notify(self, members: Mapping[str, Any]) -> None:
        await self._send(
            {"method": messages.EVENT, "params": {"subscription": self.number, **members}}
        )
