"""From method and path to a row."""

import pytest

from agentbox.contracts.registry import ROUTES
from agentbox.contracts.routes.matcher import RouteMatcher

MATCHER = RouteMatcher(ROUTES)


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
    match = MATCHER.match(method, path)
    assert match is not None
    assert match.route is not None
    assert match.route.name == name


@pytest.mark.parametrize(
    "path", ["/", "/livez/", "/v1/beads//claim", "/v1/nothing", "/v1/beads/a/b/c"]
)
def test_unknown_paths_have_no_row(path: str) -> None:
    """Nothing is normalised: another path is another path, and an empty segment is no parameter."""
    assert MATCHER.match("GET", path) is None


def test_an_encoded_slash_is_no_separator() -> None:
    """%2F stays inside its segment and reaches the handler decoded."""
    match = MATCHER.match("GET", "/v1/beads/a%2Fb")
    assert match is not None
    assert match.parameters == {"id": "a/b"}


def test_the_rest_of_a_path_stays_encoded() -> None:
    """So that its handler can tell a slash from %2F; every other parameter must be UTF-8."""
    match = MATCHER.match("PUT", "/v1/pods/a/b%2Fc%ff/")
    assert match is not None
    assert match.parameters == {"path": "a/b%2Fc%ff/"}
    assert MATCHER.match("GET", "/v1/pods/") is not None
    assert MATCHER.match("GET", "/v1/pods") is None
    assert MATCHER.match("GET", "/v1/beads/%ff") is None


def test_a_wrong_method_names_the_right_ones() -> None:
    """`allow` lists every method of the path; a stream has no HEAD."""
    task = MATCHER.match("PATCH", "/v1/tasks/x")
    assert task is not None
    assert task.route is None
    assert set(task.allow) == {"GET", "HEAD", "DELETE"}
    stream = MATCHER.match("HEAD", "/v1/events/stream")
    assert stream is not None
    assert stream.route is None
    assert stream.allow == ("GET",)
