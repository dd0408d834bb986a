"""What a connection is sent unasked: items of a stream, chunks of an attached stdout; never beyond the credit given."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.streams.attached_readers import AttachedReader
from agentbox.agents.streams.reader import ItemReader
from agentbox.core.records.wire import to_wire
from agentbox.core.rpc import messages
from agentbox.core.slot_errors import AdapterError, BackendError, CursorExpired

BATCH = 64 << 10  # bytes of data a notification

Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class ServerSubscription:
    """One subscription. The client grants credit in bytes and gives it back as its reader takes the items."""

    def __init__(self, number: int, credit: int, send: Send) -> None:
        self.number = number
        self._credit, self._send = credit, send
        self._credit_available = asyncio.Event()
        self._attached: AttachedReader | None = None
        self._unacknowledged: deque[tuple[int, int]] = (
            deque()
        )  # bytes and last cursor of what its reader has not taken
        self._acknowledged_bytes = 0  # bytes that were granted again, of the first of those
        self._in_transit: deque[tuple[int, int]] = (
            deque()
        )  # what it has taken and may not have passed on, likewise
        self._in_transit_bytes = 0  # bytes of these

    def add_credit(self, size: int) -> None:
        """More may be sent: the reader has taken that much."""
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
        self, reader: ItemReader, *, follow: bool, attached: AttachedReader | None = None
    ) -> None:
        """Items until nothing will follow, or without `follow` until what is kept now was sent. What `attached` has not
        taken is not dropped."""
        self._attached = attached
        async with self._report_end():
            while True:
                if items := reader.batch(await self._wait_for_credit()):
                    size = sum(len(item.data) for item in items)
                    if attached is not None:
                        self._unacknowledged.append((size, reader.position))
                    await self._send_batch([item.to_wire() for item in items], size)
                elif reader.finished or not follow:
                    return
                else:
                    await reader.wait_for_items()

    async def send_items(self, items: AsyncIterator[tuple[Any, int]]) -> None:
        """Items on the wire and the bytes that each counts, until there are no more."""
        async with self._report_end(), contextlib.aclosing(items) as stream:  # type: ignore[type-var]
            async for item, size in stream:
                await self._wait_for_credit()
                await self._send_batch([item], size)

    async def send_stdout(self, runner: AgentRunner, generation: int) -> None:
        """Chunks of one generation, from where the last holder stopped; ends with the generation. A cut is an error."""
        record = runner.entry
        async with self._report_end():
            reader = ItemReader(runner.stream, record.delivered, ("stdout",))
            while True:
                items = reader.batch(await self._wait_for_credit())
                if any(item.kind == "state" for item in items):
                    raise CursorExpired(
                        "cannot go on: output was dropped before it was read",
                        oldest=reader.position,
                    )
                if chunks := [item.data for item in items if item.generation == generation]:
                    await self._send_batch(
                        [to_wire(chunk) for chunk in chunks], sum(map(len, chunks))
                    )
                    record.delivered = reader.position
                elif record.generation != generation or record.pid is None:
                    return
                else:
                    await reader.wait_for_items()

    @contextlib.asynccontextmanager
    async def _report_end(self) -> AsyncIterator[None]:
        """Tells the client how the flow ended: well, or with an error."""
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

    async def _wait_for_credit(self) -> int:
        while self._credit <= 0:
            self._credit_available.clear()
            await self._credit_available.wait()
        return min(self._credit, BATCH)

    async def _send_batch(self, items: list[Any], size: int) -> None:
        self._credit -= size
        await self._notify({"items": items, "size": size})

    async def _notify(self, members: Mapping[str, Any]) -> None:
        await self._send(
            {"method": messages.EVENT, "params": {"subscription": self.number, **members}}
        )
