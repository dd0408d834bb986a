"""Finds the route for a method and path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from agentbox.contracts.routes.route import Route


@dataclass(frozen=True)
class RouteMatch:
    """The result of a match. `route` is None if the path exists without that method; `allow` lists
    its methods. Parameters are decoded, except the rest parameter of a path, in which `/` and `%2F`
    differ.
    """

    route: Route | None
    parameters: Mapping[str, str]
    allow: tuple[str, ...]
    probe: bool


class RouteMatcher:
    """Finds the route for a request. A GET route also serves HEAD, except for streams and
    WebSockets.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._fixed: dict[str, list[Route]] = {}
        self._patterns = [(route.pattern, route) for route in routes if route.parameters]
        for route in routes:
            if not route.parameters:
                self._fixed.setdefault(route.path, []).append(route)

    def match(self, method: str, raw_path: str) -> RouteMatch | None:
        """None if no route has that path, or if it is not valid UTF-8. `raw_path` is
        percent-encoded, so that %2F is not a separator.
        """
        rows = self._fixed.get(raw_path)
        if rows is not None:
            return _choose(rows, {}, method)
        matches = [
            (route, hit.groupdict())
            for pattern, route in self._patterns
            if (hit := pattern.match(raw_path))
        ]
        if not matches:
            return None
        first = matches[0][0].path
        rows = [route for route, _ in matches if route.path == first]
        try:
            parameters = {
                name: value if name == rows[0].rest_parameter else _decode(value)
                for name, value in matches[0][1].items()
            }
        except UnicodeDecodeError:
            return None
        return _choose(rows, parameters, method)


def _decode(segment: str) -> str:
    """Raises UnicodeDecodeError for invalid UTF-8: two paths must not have one meaning."""
    return unquote_to_bytes(segment.encode("latin-1")).decode()


def _choose(rows: Sequence[Route], parameters: Mapping[str, str], method: str) -> RouteMatch:
    allow: list[str] = []
    for route in rows:
        allow.append(route.method)
        if route.method == "GET" and not route.stream and not route.socket:
            allow.append("HEAD")
    effective_method = "GET" if method == "HEAD" and "HEAD" in allow else method
    selected = next((route for route in rows if route.method == effective_method), None)
    return RouteMatch(selected, parameters, tuple(allow), rows[0].is_probe)
