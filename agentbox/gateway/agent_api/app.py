"""`/rpc` over HTTP and WebSocket: one JSON-RPC message per body or WebSocket message."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any, Final

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentbox.gateway.agent_api import jsonrpc
from agentbox.gateway.agent_api.api import AgentApi
from agentbox.gateway.agent_api.errors import INVALID_REQUEST, UNAUTHENTICATED, AgentApiError
from agentbox.gateway.authorizer import AccessDenied
from agentbox.policy.rights.authorization import Authorization

MAX_SOCKETS: Final = 8  # WebSockets per agent
_POLICY_VIOLATION, _TOO_BIG = 1008, 1009  # close codes (RFC 6455 section 7.4.1)


class JsonRpcEndpoint:
    """The endpoints of `/rpc`."""

    def __init__(self, agent_api: AgentApi) -> None:
        self._agent_api = agent_api
        self._sockets: dict[str, int] = {}

    async def call(self, request: Request) -> Response:
        """One message. Raises AgentApiError for an unknown caller, or a message that is too
        large."""
        caller = identify(self._agent_api, request)
        body = await read_body(request, frame_limit(caller))
        response = await jsonrpc.handle(body, partial(self._agent_api.call, caller))
        return respond(response, status=200 if response else 204)

    async def connect(self, socket: WebSocket) -> None:
        """One WebSocket. Refusals close it before it opens."""
        try:
            caller = identify(self._agent_api, socket)
        except AgentApiError as error:
            await socket.close(_POLICY_VIOLATION, error.message[:120])
            return
        if self._sockets.get(caller.agent_id, 0) >= MAX_SOCKETS:
            self._agent_api.authorizer.report_denial(
                caller, "agent-api", "limit:agent-api", "sockets"
            )
            await socket.close(_POLICY_VIOLATION, f"{MAX_SOCKETS} sockets are open")
            return
        self._sockets[caller.agent_id] = self._sockets.get(caller.agent_id, 0) + 1
        try:
            await socket.accept()
            with suppress(WebSocketDisconnect):
                await self._serve_messages(caller, socket)
        finally:
            self._sockets[caller.agent_id] -= 1
            if not self._sockets[caller.agent_id]:
                del self._sockets[caller.agent_id]

    async def _serve_messages(self, caller: Authorization, socket: WebSocket) -> None:
        """Serves calls in order, until the agent's token becomes invalid."""
        while True:
            incoming = asyncio.ensure_future(socket.receive())
            try:
                caller = await self._wait_message(caller, incoming, socket)
            except AgentApiError as error:
                incoming.cancel()
                await socket.close(_POLICY_VIOLATION, error.message[:120])
                return
            message = incoming.result()
            if message["type"] == "websocket.disconnect":
                return
            data = message.get("text") or message.get("bytes") or ""
            if len(data) > frame_limit(caller):
                await socket.close(_TOO_BIG, "limits.frame")
                return
            response = await jsonrpc.handle(data, partial(self._agent_api.call, caller))
            if response is not None:
                await socket.send_text(response.decode())

    async def _wait_message(
        self, caller: Authorization, incoming: "asyncio.Future[Any]", socket: WebSocket
    ) -> Authorization:
        """Waits for a message and returns the caller. Raises AgentApiError as soon as the token is
        invalid."""
        while not incoming.done():
            revocation = self._agent_api.authorizer.revocation(caller)
            await asyncio.wait({incoming, revocation}, return_when=asyncio.FIRST_COMPLETED)
            if revocation.done():
                caller = identify(self._agent_api, socket)
        return caller


def identify(agent_api: AgentApi, connection: HTTPConnection) -> Authorization:
    """Authenticates by `Authorization: Bearer`. Raises AgentApiError (UNAUTHENTICATED)."""
    credentials = connection.headers.getlist("authorization")
    scheme, _, token = (credentials[0] if len(credentials) == 1 else "").partition(" ")
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
    return int(caller.limits["frame"])


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Reads a body. Raises AgentApiError if it is too large, ClientDisconnect if the client
    disconnected."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise AgentApiError(
                INVALID_REQUEST,
                f"the maximum size of a message is {max_bytes} bytes (limits.frame)",
                code="value-too-large",
                limit="frame",
                cap=max_bytes,
                config_path="limits.frame",
            )
    return bytes(body)


def respond(message: bytes | None, status: int) -> Response:
    """The response to a message; None: without a body."""
    return Response(
        message,
        status,
        {"Cache-Control": "no-store"},
        media_type="application/json" if message else None,
    )
