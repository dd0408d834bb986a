"""Server side of one connection to a program of the box: authentication first, then concurrent
requests, replies in any order.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

import structlog

from agentbox.core.rpc import messages
from agentbox.core.rpc.subscriptions import ServerSubscription
from agentbox.core.slot_errors import AdapterError, ContractMismatch, PermissionDenied

log = structlog.get_logger()

_until_reply: ContextVar[contextlib.AsyncExitStack] = ContextVar("agentbox_until_reply")


async def hold_until_reply(lock: asyncio.Lock) -> None:
    """Acquires the lock for the call that is handled now; it is released once the reply was sent,
    or cannot be."""
    await _until_reply.get().enter_async_context(lock)


class RequestHandler(Protocol):
    """Handles the requests of a connection, and states the version of their contract."""

    @property
    def contract_version(self) -> str: ...

    @property
    def program(self) -> str:
        """Its name, for errors."""
        ...

    def handshake(self, session: "Session[Any]", params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of `initialize`, before the version check. Raises PermissionDenied."""
        ...

    async def handle(self, session: "Session[Any]", method: str, params: Mapping[str, Any]) -> Any:
        """The result of a method. Raises slot errors, and KeyError for a missing parameter."""
        ...


B = TypeVar("B", bound=RequestHandler)


class Session(Generic[B]):
    """`attachments` and `subscriptions` are keyed by the client's subscription number."""

    def __init__(
        self, service: B, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.service = service
        self.subscriptions: dict[int, ServerSubscription] = {}
        self.attachments: dict[int, Any] = {}
        self.program = ""  # whose token it was opened with; "": the control plane
        self.is_watch_only = False  # such a client neither ends agents nor is notified of their end
        self._reader, self._writer = reader, writer
        self._initialized = False
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._subscription_tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Serves until the client disconnects or sends an invalid message."""
        try:
            while line := await self._reader.readline():
                self._receive(messages.decode(line))
        except (
            ConnectionError,
            ValueError,
            messages.InvalidMessage,
        ) as error:  # ValueError: a line over the limit
            log.warning("connection closed", reason=str(error))
        finally:
            await self._disconnect()

    async def send(self, message: messages.Message) -> None:
        """Writes a message; waits while the client does not read."""
        self._writer.write(messages.encode(message))
        with contextlib.suppress(ConnectionError):  # the read side notices
            await self._writer.drain()

    def run_subscription(
        self,
        subscription: ServerSubscription,
        work: Coroutine[Any, Any, None],
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Runs `work`, which feeds the subscription, until it ends or the client closes the
        subscription; then calls `on_end`.
        """
        self.subscriptions[subscription.number] = subscription
        task = asyncio.create_task(work)
        self._subscription_tasks[subscription.number] = task
        task.add_done_callback(lambda _: self._discard(subscription.number, on_end))

    def close_subscription(self, number: int) -> None:
        """Ends a subscription. Does nothing if it has ended."""
        if task := self._subscription_tasks.get(number):
            task.cancel()

    def initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Authenticates the caller and checks the version. Raises PermissionDenied or
        ContractMismatch.
        """
        result = self.service.handshake(self, params)
        version = self.service.contract_version
        client_version = str(params.get("contract_version", ""))
        if client_version.partition(".")[0] != version.partition(".")[0]:
            mismatch = {"slot": "orchestrator", "ours": version, "theirs": client_version}
            raise ContractMismatch(
                f"cannot use {self.service.program}: it implements contract {version}, the caller "
                f"{client_version}",
                mismatches=[mismatch],
            )
        self._initialized = True
        return {"contract_version": version, **result}

    def _receive(self, message: messages.Message) -> None:
        number, method, params = (
            message.get("id"),
            message.get("method"),
            message.get("params") or {},
        )
        if not isinstance(method, str) or not isinstance(params, Mapping):
            raise messages.InvalidMessage(
                "cannot read a message: it has no method, or its params are not an object"
            )
        if number is None and not self._initialized:
            raise messages.InvalidMessage("cannot read a message: the first one must be initialize")
        if number is None:
            self._on_notification(method, params)
        elif isinstance(number, int) and number not in self._calls:
            task = asyncio.create_task(self._respond(number, method, params))
            self._calls[number] = task
            task.add_done_callback(lambda _: self._calls.pop(number))
        else:
            raise messages.InvalidMessage(
                "cannot read a message: its id is not an integer, or is in use"
            )

    def _on_notification(self, method: str, params: Mapping[str, Any]) -> None:
        number = params.get("id", params.get("subscription"))
        if not isinstance(number, int):
            return
        if method == messages.CANCEL:
            if task := self._calls.get(number):
                task.cancel()
        elif params.get("close"):
            self.close_subscription(number)
        elif subscription := self.subscriptions.get(number):
            subscription.add_credit(int(params.get("credit", 0)))

    async def _respond(self, number: int, method: str, params: Mapping[str, Any]) -> None:
        async with contextlib.AsyncExitStack() as held:
            _until_reply.set(held)
            await self._reply(number, method, params)

    async def _reply(self, number: int, method: str, params: Mapping[str, Any]) -> None:
        reply: dict[str, Any] = {"id": number}
        try:
            reply["result"] = await self._dispatch(method, params)
        except AdapterError as error:
            reply["error"] = messages.encode_error(error)
        except KeyError as error:
            reply["error"] = {
                "code": messages.INVALID_REQUEST,
                "message": f"missing parameter {error}",
            }
        except Exception:
            log.exception("request failed", method=method)
            reply["error"] = {
                "code": messages.INTERNAL,
                "message": f"{self.service.program} failed; see its log",
            }
        await self.send(reply)
        if "error" in reply and not self._initialized:
            self._writer.close()

    async def _dispatch(self, method: str, params: Mapping[str, Any]) -> Any:
        if method == "initialize":
            return self.initialize(params)
        if not self._initialized:
            raise PermissionDenied(
                f"cannot use {self.service.program}: the first call must be initialize",
                scope="core",
            )
        return await self.service.handle(self, method, params)

    def _discard(self, number: int, on_end: Callable[[], None]) -> None:
        self.subscriptions.pop(number, None)
        self._subscription_tasks.pop(number, None)
        self.attachments.pop(number, None)
        on_end()

    async def _disconnect(self) -> None:
        tasks = [*self._calls.values(), *self._subscription_tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()


Params = Mapping[str, Any]
Method = Callable[[Session[B], Params], Awaitable[Any]]
