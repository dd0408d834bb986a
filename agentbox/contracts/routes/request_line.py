"""The URLs of requests. Each command of the CLI imports this: it has only what a client needs."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urlencode

_PARAMETER = re.compile(r"\{([a-z_]+)(\*?)\}")


class InvalidUrl(ValueError):
    """The parameters of a request make no URL that reaches its route."""


class NotASegment(InvalidUrl):
    """Clients and proxies would drop or resolve this parameter of a path."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(f"{name} is {value!r}, which is not a path segment")
        self.value = value


class RequestLine(NamedTuple):
    """What a client needs of a route. `query` are the allowed query parameters; a `stream` returns
    server-sent events. `operation` is its method of the resource; a lost reply of an `idempotent`
    one may be repeated.
    """

    name: str
    method: str
    path: str
    query: tuple[str, ...]
    stream: bool
    operation: str = ""
    idempotent: bool = False

    def url(
        self, parameters: Mapping[str, str] | None = None, query: Mapping[str, object] | None = None
    ) -> str:
        """Path and query string. Raises KeyError for a missing parameter, ValueError for an unknown
        query parameter, or for a parameter that clients and proxies would normalise (an empty
        segment, `.` or `..`), so that the request would reach another route.
        """
        values, rest = parameters or {}, rest_parameter(self.path)
        for name in path_parameters(self.path):
            if name != rest and values[name] in ("", ".", ".."):
                raise NotASegment(name, values[name])
        if rest and not _is_stable(values[rest]):
            raise InvalidUrl(f"{values[rest]!r} has an empty segment, or one that is . or ..")
        path = _PARAMETER.sub(
            lambda match: quote(str(values[match[1]]), safe="/" if match[2] else ""), self.path
        )
        present = {name: value for name, value in (query or {}).items() if value is not None}
        if unknown := sorted(set(present) - set(self.query)):
            raise ValueError(f"route {self.name} has no query parameter {unknown[0]!r}")
        return f"{path}?{urlencode(present, doseq=True)}" if present else path


def path_parameters(path: str) -> tuple[str, ...]:
    """The parameter names in a path."""
    return tuple(name for name, _ in _PARAMETER.findall(path))


def rest_parameter(path: str) -> str:
    """The name of the parameter that matches the rest of the path; "" if there is none."""
    return next((name for name, star in _PARAMETER.findall(path) if star), "")


def _is_stable(path: str) -> bool:
    return path == "" or not any(
        segment in ("", ".", "..") for segment in path.removesuffix("/").split("/")
    )
