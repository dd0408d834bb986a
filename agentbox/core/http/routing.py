"""Routes that match the percent-encoded path."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.convertors import PathConvertor
from starlette.middleware import Middleware
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agentbox.core.http.problems import MethodNotAllowed


class PathRoute(Route):
    """All methods of one path, as one route: a 405 lists every method.

    `{name}` in the path is one segment, in which `%2F` is no separator; `{name:path}` is the rest
    of the path and stays encoded, so that its endpoint can tell `/` from `%2F`. A path that is not
    valid UTF-8 does not match: two paths must not have one meaning. A WebSocket is matched as the
    GET request that it starts as.
    """

    def __init__(
        self, path: str, endpoints: Mapping[str, ASGIApp], *middleware: Middleware
    ) -> None:
        super().__init__(path, _Methods(endpoints), middleware=middleware)
        self._endpoints = endpoints
        self._prefix = path.partition("{")[0].encode()
        self._encoded = frozenset(
            name
            for name, convertor in self.param_convertors.items()
            if isinstance(convertor, PathConvertor)
        )

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """`endpoint` in the scope is None for a method that the path does not have."""
        parameters = self._match(scope["raw_path"])
        if parameters is None:
            return Match.NONE, {}
        endpoint = self._endpoints.get(scope.get("method", "GET"))
        return Match.FULL, {"endpoint": endpoint, "path_params": parameters}

    def _match(self, raw_path: bytes) -> dict[str, Any] | None:
        if not self.param_convertors:
            return {} if raw_path == self._prefix else None
        if not raw_path.startswith(self._prefix):
            return None
        match = self.path_regex.match(raw_path.decode("latin-1"))
        if match is None:
            return None
        try:
            return {
                name: value
                if name in self._encoded
                else unquote_to_bytes(value.encode("latin-1")).decode()
                for name, value in match.groupdict().items()
            }
        except UnicodeDecodeError:
            return None


class _Methods:
    """Passes a request to the endpoint of its method."""

    def __init__(self, endpoints: Mapping[str, ASGIApp]) -> None:
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["endpoint"] is None:
            raise MethodNotAllowed(
                f"cannot {scope.get('method', 'GET')} this path", allow=list(self._endpoints)
            )
        await scope["endpoint"](scope, receive, send)
