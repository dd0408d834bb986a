"""From method and path to a row of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from agentbox.contracts.routes.route import Route


@dataclass(frozen=True)
class RouteMatch:
    """What a path means. `route` is None when the path is known but not the method; `allow` are its methods.

    Parameters are decoded, but for the rest of a path: in it a `/` and a `%2F` must be told apart.
    """

    route: Route | None
    parameters: Mapping[str, str]
    allow: tuple[str, ...]
    probe: bool


class RouteMatcher:
    """Finds the row for a request. A GET row answers HEAD too, unless it streams or becomes a WebSocket."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._fixed: dict[str, list[Route]] = {}
        self._patterns = [(route.pattern, route) for route in routes if route.parameters]
        for route in routes:
            if not route.parameters:
                self._fixed.setdefault(route.path, []).append(route)

    def match(self, method: str, raw_path: str) -> RouteMatch | None:
        """None when no row has that path, or it is no UTF-8. `raw_path` is still percent-encoded, so that %2F is no separator."""
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
    """Raises UnicodeDecodeError for what is no UTF-8: two paths must not mean one name."""
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
