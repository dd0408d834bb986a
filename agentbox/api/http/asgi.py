"""The Starlette application of a listener: routes, middleware, errors."""

from collections.abc import Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from agentbox.api.http.endpoint import Endpoint, is_unread
from agentbox.api.http.livez import LivezShortcut
from agentbox.api.metrics.http_metrics import UNMATCHED, HttpMetrics
from agentbox.api.services import Services
from agentbox.contracts.routes.route import Route
from agentbox.core.http.headers import allowed_hosts, check_host
from agentbox.core.http.middleware import CountRequest, CrowdingLimit, RequestContext
from agentbox.core.http.responses import problem_response
from agentbox.core.http.routing import PathRoute
from agentbox.core.slot_errors import AdapterError, NotFound


def make_application(services: Services, routes: Sequence[Route]) -> Starlette:
    """Serves the routes of one listener. `/livez` is answered before any other check."""
    middleware = [Middleware(RequestContext, _counter(services.http))]
    if any(route.name == "livez" for route in routes):
        middleware.insert(0, Middleware(LivezShortcut, services))
    application = Starlette(
        routes=make_routes(routes, lambda route: Endpoint(services, route)),
        middleware=middleware,
        exception_handlers={AdapterError: _respond},
    )
    application.router.redirect_slashes = False  # a path that ends with / is another resource
    application.router.default = CrowdingLimit(_unmatched(allowed_hosts(services.plan)))
    return application


def make_routes(
    routes: Sequence[Route], make_endpoint: Callable[[Route], ASGIApp]
) -> list[PathRoute]:
    """One route per path, those without parameters first. GET also serves HEAD, except for streams
    and WebSockets.
    """
    paths: dict[str, dict[str, ASGIApp]] = {}
    for route in sorted(routes, key=lambda route: bool(route.parameters)):
        methods, endpoint = paths.setdefault(route.path, {}), make_endpoint(route)
        methods[route.method] = endpoint
        if route.method == "GET" and not route.stream and not route.socket:
            methods["HEAD"] = endpoint
    probes = {route.path for route in routes if route.is_probe}
    return [
        PathRoute(
            path.replace("*}", ":path}"), methods, Middleware(CrowdingLimit, probe=path in probes)
        )
        for path, methods in paths.items()
    ]


def _unmatched(hosts: frozenset[str]) -> ASGIApp:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        check_host(scope["state"]["headers"], hosts)
        raise NotFound("cannot find this path", resource="path", id=scope["path"])

    return application


async def _respond(connection: Request | WebSocket, error: Exception) -> Any:
    """The problem of a typed error, instead of a response or of the upgrade to a WebSocket. The
    connection is closed where a body may be unread.
    """
    assert isinstance(error, AdapterError), "the table has no other class"
    scope = connection.scope
    response = problem_response(error, scope["state"]["request_id"])
    matched = scope.get("endpoint") is not None
    unread = not matched or ("body" in scope["state"] and is_unread(scope))
    if unread or error.status in (413, 503) or isinstance(connection, WebSocket):
        response.headers["connection"] = "close"
    if not isinstance(connection, WebSocket):
        return response
    await connection.send_denial_response(response)
    return None


def _counter(metrics: HttpMetrics) -> CountRequest:
    def count(scope: Scope, status: int, seconds: float) -> None:
        """Streams and WebSockets are not in the durations."""
        endpoint: Endpoint | None = scope.get("endpoint")
        is_socket = scope["type"] == "websocket"
        lasting = is_socket or (endpoint is not None and endpoint.route.stream and status == 200)
        metrics.count(
            endpoint.route.template if endpoint else UNMATCHED,
            "GET" if is_socket else scope["method"],
            status,
            -1 if lasting else seconds,
        )

    return count
