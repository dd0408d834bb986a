"""The agent API, MCP and the model gateway as one Starlette application."""

from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from agentbox.core.http.middleware import OverloadMiddleware
from agentbox.core.http.problems import TooBusy
from agentbox.core.http.responses import header_list
from agentbox.gateway.agent_api.app import JsonRpcEndpoint
from agentbox.gateway.agent_api.errors import (
    INVALID_REQUEST,
    UNAUTHENTICATED,
    AgentApiError,
)
from agentbox.gateway.agent_api.jsonrpc import encode_error
from agentbox.gateway.agent_api.mcp import McpEndpoint

_TOO_MANY_CONNECTIONS = (
    "cannot serve this connection: too many connections are open. Try again in a second."
)
_UNMATCHED = (
    "cannot find this path: the gateway serves /llm, /mcp, /rpc, and absolute URLs as a proxy."
)
_CLOSE = ("Connection", "close")
_TRY_AGAIN_LATER = 1013  # registry of close codes (RFC 6455)


def make_application(rpc: JsonRpcEndpoint, mcp: McpEndpoint, llm: ASGIApp) -> Starlette:
    """`llm` reads the percent-encoded path itself: it must not match another path than it sends."""
    application = Starlette(
        exception_handlers={
            AgentApiError: _agent_api_error,
            TooBusy: _http_error,
            HTTPException: _http_error,
            405: _method_not_allowed,
        }
    )
    application.router = Router(
        [
            *(Route(path, rpc.call, methods=["POST"]) for path in ("/rpc", "/rpc/{rest:path}")),
            *(WebSocketRoute(path, rpc.connect) for path in ("/rpc", "/rpc/{rest:path}")),
            *(Route(path, mcp.call, methods=["POST"]) for path in ("/mcp", "/mcp/{server:path}")),
            Mount("/llm", llm),
        ],
        redirect_slashes=False,
        default=_unmatched,
        middleware=[Middleware(OverloadMiddleware)],
    )
    return application


def unavailable_app(feature: str, reason: str = "{} is not supported in this release") -> ASGIApp:
    """An application that answers 503, for a component this box does not run."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        raise HTTPException(503, f"cannot serve this path: {reason.format(feature)}.")

    return application


async def _unmatched(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(404, _UNMATCHED)


async def _http_error(connection: Request | WebSocket, error: Exception) -> Any:
    """`{"error": message}`; a WebSocket is closed before it opens."""
    status, message = 503, _TOO_MANY_CONNECTIONS
    if isinstance(error, HTTPException):
        status, message = error.status_code, error.detail
    if not isinstance(connection, WebSocket):
        return JSONResponse({"error": message}, status, header_list(_CLOSE))
    await connection.close(_TRY_AGAIN_LATER, message[:120])
    return None


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "the table has no other class"
    refusal = AgentApiError(INVALID_REQUEST, "the agent API supports POST only")
    return _error_response(refusal, 405, *(error.headers or {}).items())


async def _agent_api_error(request: Request, error: Exception) -> Response:
    """An error before the message was read: its caller is unknown, or it is too large."""
    assert isinstance(error, AgentApiError), "the table has no other class"
    if error.number == UNAUTHENTICATED:
        return _error_response(error, 401, _CLOSE, ("WWW-Authenticate", "Bearer"))
    return _error_response(error, 413, _CLOSE)


def _error_response(error: AgentApiError, status: int, *headers: tuple[str, str]) -> Response:
    return Response(
        encode_error(error),
        status,
        header_list(("Cache-Control", "no-store"), *headers),
        media_type="application/json",
    )
