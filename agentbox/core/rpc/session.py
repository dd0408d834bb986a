"""One connection to agent-host: the token first, then requests side by side, answers in any order."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, Protocol, TypeVar

import structlog

from agentbox.contracts.orchestrator import CONTRACT_VERSION
from agentbox.core.rpc import messages
from agentbox.core.rpc.flows import Flow
from agentbox.core.slot_errors import AdapterError, ContractMismatch, PermissionDenied

log = structlog.get_logger()


class Backend(Protocol):
    """Who answers on a connection."""

    def greet(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to `initialize`, the version already checked. Raises PermissionDenied."""
        ...

    async def answer(self, session: "Session[Any]", method: str, params: Mapping[str, Any]) -> Any:
        """The result of a method. Raises the errors of the slot, KeyError for a parameter that is missing."""
        ...


B = TypeVar("B", bound=Backend)


class Session(Generic[B]):
    """`attachments` and `flows` are by the number that the client gave the subscription."""

    def __init__(self, service: B, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.service = service
        self.flows: dict[int, Flow] = {}
        self.attachments: dict[int, Any] = {}
        self.only_follows = False  # what agents hold: a caller that ends none, and learns of no end
        self._reader, self._writer = reader, writer
        self._known = False
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._following: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Until the client leaves, or says something that is no JSON-RPC."""
        try:
            while line := await self._reader.readline():
                self._take(messages.decode(line))
        except (ConnectionError, ValueError, messages.Garbage) as error:  # ValueError: a line over the limit
            log.warning("connection closed", reason=str(error))
        finally:
            await self._leave()

    async def send(self, message: messages.Message) -> None:
        """Writes a message, and waits while the client does not read."""
        self._writer.write(messages.encode(message))
        with contextlib.suppress(ConnectionError):  # the read side notices
            await self._writer.drain()

    def follow(self, flow: Flow, work: Coroutine[Any, Any, None], ended: Callable[[], None] = lambda: None) -> None:
        """Runs `work`, which feeds the flow, until it ends or the client closes the subscription; then calls `ended`."""
        self.flows[flow.number] = flow
        task = asyncio.create_task(work)
        self._following[flow.number] = task
        task.add_done_callback(lambda _: self._forget(flow.number, ended))

    def close_flow(self, number: int) -> None:
        """Ends a subscription. Nothing happens when it has ended."""
        if task := self._following.get(number):
            task.cancel()

    def initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Checks who calls, and the version. Raises PermissionDenied or ContractMismatch."""
        hello = self.service.greet(params)
        theirs = str(params.get("contract_version", ""))
        if theirs.partition(".")[0] != CONTRACT_VERSION.partition(".")[0]:
            mismatch = {"slot": "orchestrator", "ours": CONTRACT_VERSION, "theirs": theirs}
            raise ContractMismatch(
                f"cannot use agent-host: it speaks {CONTRACT_VERSION}, the caller {theirs}", mismatches=[mismatch]
            )
        self._known = True
        return {"contract_version": CONTRACT_VERSION, **hello}

    def _take(self, message: messages.Message) -> None:
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if not isinstance(method, str) or not isinstance(params, Mapping):
            raise messages.Garbage("cannot read a message: it has no method, or its params are no object")
        if number is None and not self._known:
            raise messages.Garbage("cannot read a message: the first one must be initialize")
        if number is None:
            self._notified(method, params)
        elif isinstance(number, int) and number not in self._calls:
            task = asyncio.create_task(self._answer(number, method, params))
            self._calls[number] = task
            task.add_done_callback(lambda _: self._calls.pop(number))
        else:
            raise messages.Garbage("cannot read a message: its id is no integer, or is in use")

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        number = params.get("id", params.get("subscription"))
        if not isinstance(number, int):
            return
        if method == messages.CANCEL:
            if task := self._calls.get(number):
                task.cancel()
        elif params.get("close"):
            self.close_flow(number)
        elif flow := self.flows.get(number):
            flow.grant(int(params.get("credit", 0)))

    async def _answer(self, number: int, method: str, params: Mapping[str, Any]) -> None:
        reply: dict[str, Any] = {"id": number}
        try:
            reply["result"] = await self._call(method, params)
        except AdapterError as error:
            reply["error"] = messages.error_of(error)
        except KeyError as error:
            reply["error"] = {"code": messages.INVALID_REQUEST, "message": f"the parameter {error} is missing"}
        except Exception:
            log.exception("request failed", method=method)
            reply["error"] = {"code": messages.INTERNAL, "message": "agent-host failed; its log says why"}
        await self.send(reply)
        if "error" in reply and not self._known:
            self._writer.close()

    async def _call(self, method: str, params: Mapping[str, Any]) -> Any:
        if method == "initialize":
            return self.initialize(params)
        if not self._known:
            raise PermissionDenied("cannot use agent-host: the first call must be initialize", scope="core")
        return await self.service.answer(self, method, params)

    def _forget(self, number: int, ended: Callable[[], None]) -> None:
        self.flows.pop(number, None)
        self._following.pop(number, None)
        self.attachments.pop(number, None)
        ended()

    async def _leave(self) -> None:
        tasks = [*self._calls.values(), *self._following.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()
