"""From method and path to a row."""

from typing import Any

import pytest
from starlette.routing import Match

from agentbox.api.http.asgi import make_routes
from agentbox.contracts.routes.registry import ROUTES
from agentbox.contracts.routes.route import Route
from agentbox.core.http.problems import MethodNotAllowed


class Row:
    """An endpoint that is only its row."""

    def __init__(self, route: Route) -> None:
        self.route = route

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("no request is served here")


PATHS = make_routes(Row(route) for route in ROUTES)


def match(method: str, path: str) -> tuple[Any, dict[str, Any]] | None:
    """The first route that matches, as the router finds it, and the scope that it sets."""
    scope = {"type": "http", "method": method, "raw_path": path.encode(), "state": {}}
    for route in PATHS:
        found, child_scope = route.matches(scope)
        if found is Match.FULL:
            return route, {**scope, **child_scope}
    return None


async def allowed(method: str, path: str) -> list[str]:
    """What the refusal of that method lists."""
    found = match(method, path)
    assert found is not None
    route, scope = found
    with pytest.raises(MethodNotAllowed) as refused:
        await route.handle(scope, None, None)
    return list(refused.value.members["allow"])


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/livez", "livez"),
        ("HEAD", "/livez", "livez"),
        ("POST", "/v1/beads/claims", "claim_next"),
        ("POST", "/v1/beads/42/claim", "claim"),
        ("GET", "/v1/beads/ready", "ready_beads"),
        ("GET", "/v1/beads/42", "show_bead"),
        ("GET", "/v1/events/stream", "stream_events"),
        ("GET", "/v1/events/17", "show_event"),
        ("DELETE", "/v1/tasks/x", "cancel_task"),
        ("GET", "/v1/tasks/x", "get_task"),
    ],
)
def test_rows_are_found(method: str, path: str, name: str) -> None:
    """A fixed path wins over one with a parameter; HEAD is answered by GET's row."""
    found = match(method, path)
    assert found is not None
    assert found[1]["endpoint"].route.name == name


@pytest.mark.parametrize(
    "path", ["/", "/livez/", "/v1/beads//claim", "/v1/nothing", "/v1/beads/a/b/c"]
)
def test_unknown_paths_have_no_row(path: str) -> None:
    """Nothing is normalised: another path is another path, and an empty segment is no parameter."""
    assert match("GET", path) is None


def test_an_encoded_slash_is_no_separator() -> None:
    """%2F stays inside its segment and is decoded for the handler."""
    found = match("GET", "/v1/beads/a%2Fb")
    assert found is not None
    assert found[1]["path_params"] == {"id": "a/b"}


def test_the_rest_of_a_path_stays_encoded() -> None:
    """So that its handler can distinguish a slash from %2F; every other parameter must be UTF-8."""
    found = match("PUT", "/v1/pods/a/b%2Fc%ff/")
    assert found is not None
    assert found[1]["path_params"] == {"path": "a/b%2Fc%ff/"}
    assert match("GET", "/v1/pods/") is not None
    assert match("GET", "/v1/pods") is None
    assert match("GET", "/v1/beads/%ff") is None


async def test_a_wrong_method_names_the_right_ones() -> None:
    """`allow` lists every method of the path; a stream has no HEAD."""
    assert set(await allowed("PATCH", "/v1/tasks/x")) == {"GET", "HEAD", "DELETE"}
    assert await allowed("HEAD", "/v1/events/stream") == ["GET"]
