"""JSON-RPC client: replies by id in any order, subscriptions with credit, `$/cancel`."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import structlog

from agentbox.core import clock
from agentbox.core.deadline import Deadline
from agentbox.core.rpc import messages
from agentbox.core.slot_errors import AdapterError, AdapterTimeout, SlotUnavailable

log = structlog.get_logger()
CREDIT = 256 << 10  # bytes that the peer may send on a subscription before it gets more credit


class Subscription:
    """Items that arrive as notifications. A stalled reader costs at most `CREDIT` bytes here."""

    def __init__(self, client: "RpcClient", number: int, method: str) -> None:
        self.number = number
        self._client, self._method = client, method
        self._batches: asyncio.Queue[Mapping[str, Any] | AdapterError] = asyncio.Queue()
        self._ended = False

    def deliver(self, batch: Mapping[str, Any] | AdapterError) -> None:
        """Called by the connection."""
        self._batches.put_nowait(batch)

    async def items(self) -> AsyncGenerator[Any, None]:
        """Yields each item once, in order, until the peer ends the subscription. Raises the error
        that the peer or the connection ended with.
        """
        while not self._ended:
            batch = await self._batches.get()
            if isinstance(batch, AdapterError):
                self._ended = True
                raise batch
            for item in batch.get("items", ()):
                yield item
            self._ended = bool(batch.get("end"))
            if "error" in batch:
                self._ended = True
                raise messages.decode_error(batch["error"], self._client.impl)
            if not self._ended:
                self._client.notify(
                    self._method, {"subscription": self.number, "credit": batch.get("size", 0)}
                )

    def close(self) -> None:
        """Tells the peer to stop. Idempotent."""
        if self._client.discard(self.number):
            self._client.notify(self._method, {"subscription": self.number, "close": True})


class RpcClient:
    """One connection. When it is lost, all pending calls fail with SlotUnavailable. `peer` and
    `slot` name it in errors. `on_dropped` is called for each reply without a pending call, and for
    each item without an open subscription.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        impl: str,
        *,
        peer: str = "agent-host",
        slot: str = "orchestrator",
        on_dropped: Callable[[], None] = lambda: None,
    ) -> None:
        self._reader, self._writer, self.impl = reader, writer, impl
        self._peer, self._slot, self._on_dropped = peer, slot, on_dropped
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._last_id = 0
        self._lost_since: str | None = None
        self._task = asyncio.create_task(self._read(), name=f"{slot}-connection")

    @property
    def lost(self) -> bool:
        """True once the connection cannot be used any more."""
        return self._lost_since is not None

    async def wait_lost(self) -> None:
        """Returns once the connection is lost or closed."""
        await asyncio.wait({self._task})

    async def call(self, method: str, params: Mapping[str, Any], deadline: Deadline) -> Any:
        """The result. Raises the peer's typed error, AdapterTimeout, or SlotUnavailable."""
        if self.lost:
            raise self._connection_lost()
        number = self._next_id()
        remaining = deadline.remaining()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        try:
            async with asyncio.timeout(remaining):
                self._send(
                    {
                        "id": number,
                        "method": method,
                        "params": {**params, "deadline_ms": int(remaining * 1000)},
                    }
                )
                await self._drain()
                return await future
        except TimeoutError as error:
            self.notify(messages.CANCEL, {"id": number})
            raise AdapterTimeout(
                f"cannot complete {method}: no reply within {remaining:.1f} s",
                slot=self._slot,
                method=method.removeprefix("agent."),
                deadline_ms=int(remaining * 1000),
            ) from error
        except asyncio.CancelledError:
            self.notify(messages.CANCEL, {"id": number})
            raise
        finally:
            self._pending.pop(number, None)

    async def subscribe(
        self, method: str, params: Mapping[str, Any], deadline: Deadline
    ) -> Subscription:
        """Makes a call whose results arrive as notifications."""
        subscription = Subscription(self, self._next_id(), method)
        self._subscriptions[subscription.number] = subscription
        try:
            await self.call(
                method, {**params, "subscription": subscription.number, "credit": CREDIT}, deadline
            )
        except BaseException:
            subscription.close()
            raise
        return subscription

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Sends a notification. Does nothing on a lost connection."""
        if not self.lost:
            self._send({"method": method, "params": params})

    def discard(self, subscription: int) -> bool:
        """Removes a subscription. False if it does not exist."""
        return self._subscriptions.pop(subscription, None) is not None

    async def close(self) -> None:
        """Ends the connection and its task. Idempotent."""
        self._task.cancel()
        await asyncio.wait(
            {self._task}
        )  # unlike `await`, distinguishes a cancelled task from a cancelled caller
        self._fail()
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _send(self, message: messages.Message) -> None:
        self._writer.write(messages.encode(message))

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise self._connection_lost() from error

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                self._receive(messages.decode(line))
        except (
            ConnectionError,
            ValueError,
            messages.InvalidMessage,
        ) as error:  # ValueError: a line over the limit
            log.warning("connection closed", peer=self._peer, reason=str(error))
            self._writer.close()
        finally:
            self._fail()

    def _receive(self, message: messages.Message) -> None:
        if message.get("method") == messages.EVENT:
            self._deliver(messages.object_member(message, "params"))
            return
        number = message.get("id")
        future = self._pending.get(number) if isinstance(number, int) else None
        if future is None or future.done():
            self._on_dropped()  # late: the caller has given up
        elif "error" in message:
            future.set_exception(
                messages.decode_error(messages.object_member(message, "error"), self.impl)
            )
        else:
            future.set_result(message.get("result"))

    def _deliver(self, batch: messages.Message) -> None:
        number = batch.get("subscription")
        subscription = self._subscriptions.get(number) if isinstance(number, int) else None
        if subscription is None:
            self._on_dropped()
            return
        if "error" in batch:
            messages.object_member(batch, "error")
        if "end" in batch or "error" in batch:
            self.discard(subscription.number)
        subscription.deliver(batch)

    def _fail(self) -> None:
        if self.lost:
            return
        self._lost_since = clock.to_wire(clock.now())
        for future in self._pending.values():
            if not future.done():
                future.set_exception(self._connection_lost())
        for subscription in self._subscriptions.values():
            subscription.deliver(self._connection_lost())
        self._subscriptions.clear()

    def _connection_lost(self) -> SlotUnavailable:
        return SlotUnavailable(
            f"cannot use {self._slot}: the connection to {self._peer} is lost",
            hint="retry later: it reconnects in the background",
            slot=self._slot,
            impl=self.impl,
            since=self._lost_since,
        )
