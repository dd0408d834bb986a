"""The Starlette application of a listener: routes, middleware, errors."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from agentbox.api.auth.request_access import RequestAccess
from agentbox.api.http.endpoint import Guards, OperationEndpoint, is_unread
from agentbox.api.http.handler import EndpointGroup
from agentbox.api.http.livez import LivezShortcut, Uptime
from agentbox.api.metrics.http_metrics import UNMATCHED, HttpMetrics
from agentbox.api.plan_source import PlanSource
from agentbox.contracts.operations.box import PAGES
from agentbox.contracts.routes.registry import RESOURCES
from agentbox.contracts.routes.route import Route
from agentbox.core.http.middleware import CountRequest, OverloadMiddleware, RequestContextMiddleware
from agentbox.core.http.responses import problem_response
from agentbox.core.http.routing import PathRoute
from agentbox.core.slot_errors import AdapterError, NotFound


class ApplicationFactory:
    """Makes the application of a listener from what serves each resource."""

    def __init__(
        self,
        guards: Guards,
        plans: PlanSource,
        groups: Mapping[str, EndpointGroup],
        uptime: Uptime,
        metrics: HttpMetrics,
    ) -> None:
        self._guards, self._plans, self._groups = guards, plans, groups
        self._uptime, self._metrics = uptime, metrics

    def make(self, listener: str) -> Starlette:
        """Serves the operations of one listener. On that of the API, `/livez` is answered before
        any other check.
        """
        middleware = [Middleware(RequestContextMiddleware, _counter(self._metrics))]
        if listener == "api":
            middleware.insert(0, Middleware(LivezShortcut, self._uptime, self._metrics))
        endpoints = [
            OperationEndpoint(
                self._guards, self._plans, self._groups[resource.endpoints], resource, row
            )
            for resource in (*RESOURCES, PAGES)
            for row in resource.operations
            if row.http and row.listener == listener
        ]
        application = Starlette(
            routes=make_routes(endpoints),
            middleware=middleware,
            exception_handlers={AdapterError: _respond},
        )
        application.router.redirect_slashes = False  # a path that ends with / is another resource
        application.router.default = OverloadMiddleware(_unmatched(self._guards.access))
        return application


class RoutedEndpoint(Protocol):
    """An ASGI application that serves one route."""

    @property
    def route(self) -> Route: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


def make_routes(endpoints: Iterable[RoutedEndpoint]) -> list[PathRoute]:
    """One route per path, those without parameters first. GET also serves HEAD, except for streams
    and WebSockets.
    """
    paths: dict[str, dict[str, ASGIApp]] = {}
    probes: set[str] = set()
    for endpoint in sorted(endpoints, key=lambda endpoint: bool(endpoint.route.parameters)):
        route = endpoint.route
        methods = paths.setdefault(route.path, {})
        methods[route.method] = endpoint
        if route.method == "GET" and not route.stream and not route.socket:
            methods["HEAD"] = endpoint
        if route.is_probe:
            probes.add(route.path)
    return [
        PathRoute(
            path.replace("*}", ":path}"),
            methods,
            Middleware(OverloadMiddleware, probe=path in probes),
        )
        for path, methods in paths.items()
    ]


def _unmatched(access: RequestAccess) -> ASGIApp:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        access.check_host(scope["state"]["headers"])
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
        endpoint: OperationEndpoint | None = scope.get("endpoint")
        is_socket = scope["type"] == "websocket"
        lasting = is_socket or (endpoint is not None and endpoint.route.stream and status == 200)
        metrics.count(
            endpoint.route.template if endpoint else UNMATCHED,
            "GET" if is_socket else scope["method"],
            status,
            -1 if lasting else seconds,
        )

    return count
