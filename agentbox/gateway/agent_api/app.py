"""`/rpc` over HTTP and WebSocket: one JSON-RPC message a body, or a message of the socket."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from agentbox.gateway.agent_api import jsonrpc
from agentbox.gateway.agent_api.api import Door
from agentbox.gateway.agent_api.custom_tools import FRAME
from agentbox.gateway.agent_api.errors import INVALID, STRANGER, DoorError
from agentbox.gateway.authorizer import Refused
from agentbox.policy.rights.standing import Standing

SOCKETS: Final = 8  # WebSockets of one agent
_GONE, _POLICY, _BIG = 1001, 1008, 1009  # close codes (RFC 6455 section 7.4.1)
Headers = Iterable[tuple[bytes, bytes]]


class RpcApp:
    """An ASGI application."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._sockets: dict[str, int] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        if scope["method"] != "POST":
            await respond(send, 405, _error(INVALID, "the door takes POST"), (b"allow", b"POST"))
            return
        try:
            who = identify(self._door, scope["headers"])
            body = await read(receive, frame(who))
        except DoorError as error:
            status = 401 if error.number == STRANGER else 413
            await respond(send, status, jsonrpc.wire({"error": error.wire()}, None), (b"connection", b"close"))
            return
        answer = await jsonrpc.answer(body, partial(self._door.call, who))
        await respond(send, 200 if answer else 204, answer or b"")

    async def _socket(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()  # websocket.connect
        try:
            who = identify(self._door, scope["headers"])
        except DoorError as error:
            await send({"type": "websocket.close", "code": _POLICY, "reason": error.message[:120]})
            return
        if self._sockets.get(who.agent_id, 0) >= SOCKETS:
            self._door.authority.denied(who, "door", "limit:door", "sockets")
            await send({"type": "websocket.close", "code": _POLICY, "reason": f"{SOCKETS} sockets are open"})
            return
        self._sockets[who.agent_id] = self._sockets.get(who.agent_id, 0) + 1
        try:
            await send({"type": "websocket.accept"})
            await self._converse(who, scope, receive, send)
        finally:
            self._sockets[who.agent_id] -= 1
            if not self._sockets[who.agent_id]:
                del self._sockets[who.agent_id]

    async def _converse(self, who: Standing, scope: Any, receive: Any, send: Any) -> None:
        """One call after another, as they came; ends with the agent's token."""
        while True:
            heard = asyncio.ensure_future(receive())
            try:
                who = await self._until_heard(who, heard, scope["headers"])
            except DoorError as error:
                heard.cancel()
                await send({"type": "websocket.close", "code": _POLICY, "reason": error.message[:120]})
                return
            message = heard.result()
            if message["type"] == "websocket.disconnect":
                return
            said = message.get("text") or message.get("bytes") or ""
            if len(said) > frame(who):
                await send({"type": "websocket.close", "code": _BIG, "reason": "limits.frame"})
                return
            if (answer := await jsonrpc.answer(said, partial(self._door.call, who))) is not None:
                await send({"type": "websocket.send", "text": answer.decode()})

    async def _until_heard(self, who: Standing, heard: "asyncio.Future[Any]", headers: Headers) -> Standing:
        """Whose socket it is when a message has come. Raises DoorError as soon as it is nobody's."""
        while not heard.done():
            cut = self._door.authority.revoked(who)
            await asyncio.wait({heard, cut}, return_when=asyncio.FIRST_COMPLETED)
            if cut.done():
                who = identify(self._door, headers)
        return who


def identify(door: Door, headers: Headers) -> Standing:
    """By `Authorization: Bearer`. Raises DoorError (STRANGER)."""
    sent = [value for name, value in headers if name == b"authorization"]
    scheme, _, token = (sent[0] if len(sent) == 1 else b"").decode("latin-1").partition(" ")
    if scheme.lower() != "bearer":
        raise DoorError(STRANGER, "send Authorization: Bearer with the token of AGENTBOX_TOKEN", code="unauthenticated")
    try:
        return door.authority.identify(token.strip())
    except Refused as refused:
        raise DoorError(STRANGER, refused.reason, code="unauthenticated") from refused


def frame(who: Standing) -> int:
    """Bytes of one message."""
    return int(who.limits.get("frame") or FRAME)


async def read(receive: Any, most: int) -> bytes:
    """A body. Raises DoorError for one that is too large, ConnectionResetError when the client leaves."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise DoorError(
                INVALID,
                f"a message has at most {most} bytes (limits.frame)",
                code="value-too-large",
                limit="frame",
                cap=most,
                config_path="limits.frame",
            )
        if not message.get("more_body"):
            return b"".join(parts)


async def respond(
    send: Any, status: int, body: bytes, *more: tuple[bytes, bytes], kind: bytes = b"application/json"
) -> None:
    """An answer with a length."""
    head = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head if body else head[1:]})
    await send({"type": "http.response.body", "body": body})


def _error(code: int, message: str) -> bytes:
    return jsonrpc.wire({"error": DoorError(code, message).wire()}, None)
