"""`/rpc` over HTTP and WebSocket: one JSON-RPC message per body or WebSocket message."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from agentbox.gateway.agent_api import jsonrpc
from agentbox.gateway.agent_api.api import AgentApi
from agentbox.gateway.agent_api.custom_tools import DEFAULT_FRAME
from agentbox.gateway.agent_api.errors import INVALID_REQUEST, UNAUTHENTICATED, AgentApiError
from agentbox.gateway.authorizer import AccessDenied
from agentbox.policy.rights.authorization import Authorization

MAX_SOCKETS: Final = 8  # WebSockets per agent
_GOING_AWAY, _POLICY_VIOLATION, _TOO_BIG = 1001, 1008, 1009  # close codes (RFC 6455 section 7.4.1)
Headers = Iterable[tuple[bytes, bytes]]


class JsonRpcEndpoint:
    """An ASGI application."""

    def __init__(self, agent_api: AgentApi) -> None:
        self._agent_api = agent_api
        self._sockets: dict[str, int] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
            return
        if scope["method"] != "POST":
            await respond(
                send,
                405,
                _error(INVALID_REQUEST, "the agent API supports POST only"),
                (b"allow", b"POST"),
            )
            return
        try:
            caller = identify(self._agent_api, scope["headers"])
            body = await read_body(receive, frame_limit(caller))
        except AgentApiError as error:
            status = 401 if error.number == UNAUTHENTICATED else 413
            await respond(
                send,
                status,
                jsonrpc.encode_response({"error": error.to_wire()}, None),
                (b"connection", b"close"),
            )
            return
        response = await jsonrpc.handle(body, partial(self._agent_api.call, caller))
        await respond(send, 200 if response else 204, response or b"")

    async def _serve_socket(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()  # websocket.connect
        try:
            caller = identify(self._agent_api, scope["headers"])
        except AgentApiError as error:
            await send(
                {
                    "type": "websocket.close",
                    "code": _POLICY_VIOLATION,
                    "reason": error.message[:120],
                }
            )
            return
        if self._sockets.get(caller.agent_id, 0) >= MAX_SOCKETS:
            self._agent_api.authorizer.report_denial(
                caller, "agent-api", "limit:agent-api", "sockets"
            )
            await send(
                {
                    "type": "websocket.close",
                    "code": _POLICY_VIOLATION,
                    "reason": f"{MAX_SOCKETS} sockets are open",
                }
            )
            return
        self._sockets[caller.agent_id] = self._sockets.get(caller.agent_id, 0) + 1
        try:
            await send({"type": "websocket.accept"})
            await self._serve_messages(caller, scope, receive, send)
        finally:
            self._sockets[caller.agent_id] -= 1
            if not self._sockets[caller.agent_id]:
                del self._sockets[caller.agent_id]

    async def _serve_messages(
        self, caller: Authorization, scope: Any, receive: Any, send: Any
    ) -> None:
        """Serves calls in order, until the agent's token becomes invalid."""
        while True:
            incoming = asyncio.ensure_future(receive())
            try:
                caller = await self._wait_message(caller, incoming, scope["headers"])
            except AgentApiError as error:
                incoming.cancel()
                await send(
                    {
                        "type": "websocket.close",
                        "code": _POLICY_VIOLATION,
                        "reason": error.message[:120],
                    }
                )
                return
            message = incoming.result()
            if message["type"] == "websocket.disconnect":
                return
            data = message.get("text") or message.get("bytes") or ""
            if len(data) > frame_limit(caller):
                await send({"type": "websocket.close", "code": _TOO_BIG, "reason": "limits.frame"})
                return
            if (
                response := await jsonrpc.handle(data, partial(self._agent_api.call, caller))
            ) is not None:
                await send({"type": "websocket.send", "text": response.decode()})

    async def _wait_message(
        self, caller: Authorization, incoming: "asyncio.Future[Any]", headers: Headers
    ) -> Authorization:
        """Waits for a message and returns the caller. Raises AgentApiError as soon as the token is
        invalid."""
        while not incoming.done():
            revocation = self._agent_api.authorizer.revocation(caller)
            await asyncio.wait({incoming, revocation}, return_when=asyncio.FIRST_COMPLETED)
            if revocation.done():
                caller = identify(self._agent_api, headers)
        return caller


def identify(agent_api: AgentApi, headers: Headers) -> Authorization:
    """Authenticates by `Authorization: Bearer`. Raises AgentApiError (UNAUTHENTICATED)."""
    credentials = [value for name, value in headers if name == b"authorization"]
    scheme, _, token = (
        (credentials[0] if len(credentials) == 1 else b"").decode("latin-1").partition(" ")
    )
    if scheme.lower() != "bearer":
        raise AgentApiError(
            UNAUTHENTICATED,
            "send Authorization: Bearer with the token of AGENTBOX_TOKEN",
            code="unauthenticated",
        )
    try:
        return agent_api.authorizer.identify(token.strip())
    except AccessDenied as denied:
        raise AgentApiError(UNAUTHENTICATED, denied.reason, code="unauthenticated") from denied


def frame_limit(caller: Authorization) -> int:
    """Maximum bytes of one message."""
    return int(caller.limits.get("frame") or DEFAULT_FRAME)


async def read_body(receive: Any, max_bytes: int) -> bytes:
    """Reads a body. Raises AgentApiError if it is too large, ConnectionResetError if the client
    disconnected."""
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > max_bytes:
            raise AgentApiError(
                INVALID_REQUEST,
                f"the maximum size of a message is {max_bytes} bytes (limits.frame)",
                code="value-too-large",
                limit="frame",
                cap=max_bytes,
                config_path="limits.frame",
            )
        if not message.get("more_body"):
            return b"".join(chunks)


async def respond(
    send: Any,
    status: int,
    body: bytes,
    *extra_headers: tuple[bytes, bytes],
    content_type: bytes = b"application/json",
) -> None:
    """Sends a response with a length."""
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *extra_headers,
    ]
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": headers if body else headers[1:],
        }
    )
    await send({"type": "http.response.body", "body": body})


def _error(code: int, message: str) -> bytes:
    return jsonrpc.encode_response({"error": AgentApiError(code, message).to_wire()}, None)
