"""Authorization: one walk over the table of routes, and the names that are recorded in what callers
write."""

import json
from collections.abc import Iterator

import pytest
from raw import Answer, ask
from support.api_box import TOKEN, ApiBox

from agentbox.client import ApiError, BoxClient
from agentbox.contracts.routes.registry import ROUTES
from agentbox.contracts.routes.route import Route

CLOSED = [route for route in ROUTES if route.scope]
CORE = "a-per-boot-token"
NEVER_CORE = {
    "admin",
    "reviews:write",
    "approvals:write",
    "mesh:admin",
    "mesh:session",
    "token:self",
    "session:self",
    "users:admin",
    "audit:read",
    "config:read",
}


def name_of(route: Route) -> str:
    return route.name


def call(box: ApiBox, route: Route, authorization: str) -> Answer:
    """The route with some path and no body."""
    path = route.url(dict.fromkeys(route.parameters, "x"))
    line = f"\nAuthorization: {authorization}" if authorization else ""
    return ask(box.plan.api.port, f"{route.method} {path} HTTP/1.1{line}")


@pytest.fixture(scope="module")
def core(box: ApiBox) -> Iterator[str]:
    """The token of a core program, as phase 5 of the boot writes it."""
    path = box.paths.token("gateway")
    path.write_text(CORE)
    yield CORE
    path.unlink()


@pytest.mark.parametrize("route", CLOSED, ids=name_of)
@pytest.mark.parametrize(
    "sent", ["", "Bearer wrong", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x"]
)
def test_no_or_wrong_credentials_are_refused(box: ApiBox, route: Route, sent: str) -> None:
    """401 with WWW-Authenticate, whatever path and body are."""
    answer = call(box, route, sent)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "unauthenticated"


@pytest.mark.parametrize("route", CLOSED, ids=name_of)
def test_a_core_token_is_held_to_its_scopes(box: ApiBox, core: str, route: Route) -> None:
    """It passes where programs work, and is 403 with the scope's name where only people may."""
    answer = call(box, route, f"Bearer {core}")
    if set(route.scope) & NEVER_CORE:
        assert (answer.status, answer.json()["scope"]) == (403, route.scope[0])
    else:
        assert answer.status not in (401, 403)


def test_tokens_may_come_after_the_api(box: ApiBox) -> None:
    """A program's token is accepted as soon as its file exists, and no longer once it is replaced."""
    path = box.paths.token("agent-host")
    before = path.read_text() if path.exists() else None
    if before is not None:
        path.chmod(0o600)
    for value in ("one", "two"):
        path.write_text(value)
        assert (
            ask(box.plan.api.port, f"GET /v1/beads HTTP/1.1\nAuthorization: Bearer {value}").status
            == 200
        )
    assert ask(box.plan.api.port, "GET /v1/beads HTTP/1.1\nAuthorization: Bearer one").status == 401
    path.write_text(before or "")


def test_the_writer_is_the_caller(client: BoxClient, box: ApiBox, core: str) -> None:
    """creator, assignee and source default to the principal; only admin and core may name another."""
    bead = client.call("create_epic", body={"title": "mine"})
    assert bead["creator"] == "urn:agentbox:operator"
    assert (
        client.call("create_epic", body={"title": "hers", "creator": "urn:x:her"})["creator"]
        == "urn:x:her"
    )
    with box.client(core) as program:
        made = program.call("create_epic", body={"title": "its"})
        assert made["creator"] == "urn:agentbox:program:gateway"


@pytest.mark.parametrize(
    "kind",
    ["boot.sealed", "agent.exited", "task.x", "journal.opened", "box.ready", "box", "health.x"],
)
def test_events_of_the_core_are_refused_from_callers(client: BoxClient, kind: str) -> None:
    """Not even an admin writes history in the core's name."""
    with pytest.raises(ApiError) as caught:
        client.call("append_events", body={"events": [{"type": kind, "data": {}}]})
    assert (caught.value.status, caught.value.code) == (400, "validation")


def test_events_of_the_core_are_taken_from_the_core(box: ApiBox, core: str) -> None:
    """A per-boot token appends them, and its name stands on them."""
    with box.client(core) as program:
        seq = program.call(
            "append_events", body={"events": [{"type": "gateway.started", "data": {}}]}
        )["first_seq"]
        assert (
            program.call("show_event", {"seq": str(seq)})["source"]
            == "urn:agentbox:program:gateway"
        )


def test_problems_carry_the_request_id(box: ApiBox) -> None:
    """A caller's id is returned in the header and in `instance`; an invalid one is replaced."""
    answer = ask(box.plan.api.port, "GET /v1/beads HTTP/1.1\nX-Request-Id: abc-123")
    assert answer.headers["x-request-id"] == "abc-123"
    assert answer.json()["instance"] == "urn:agentbox:request:abc-123"
    assert answer.headers["content-type"] == "application/problem+json"
    odd = ask(box.plan.api.port, 'GET /livez HTTP/1.1\nX-Request-Id: a"b')
    assert odd.headers["x-request-id"] not in ("", 'a"b')


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        ("GET /v1/beads?colour=red HTTP/1.1", "", 400),
        ("GET /v1/beads?limit=0 HTTP/1.1", "", 400),
        ("GET /v1/beads?limit=x HTTP/1.1", "", 400),
        ("GET /v1/beads?status=lost HTTP/1.1", "", 400),
        ("GET /v1/beads HTTP/1.1\nAccept: text/html", "", 406),
        ("GET /v1/beads HTTP/1.1\nContent-Length: 2", "{}", 413),
        ("POST /v1/beads/epics HTTP/1.1\nContent-Length: 2", "{}", 415),
        ("POST /v1/beads/epics HTTP/1.1\nContent-Type: text/plain\nContent-Length: 2", "{}", 415),
        (
            "POST /v1/beads/epics HTTP/1.1\nContent-Type: application/json\nContent-Length: 1",
            "{",
            400,
        ),
        (
            "POST /v1/beads/epics HTTP/1.1\nContent-Type: application/json\nContent-Length: 3",
            "NaN",
            400,
        ),
        (
            "POST /v1/beads/epics HTTP/1.1\nContent-Type: application/json\nContent-Length: 2",
            "[]",
            400,
        ),
        ("DELETE /v1/agents/x?generation=-1 HTTP/1.1", "", 400),
        ("DELETE /v1/agents/x HTTP/1.1", "", 400),
        ("GET /v1/nothing HTTP/1.1", "", 404),
        ("GET /v1/beads/unknown HTTP/1.1", "", 404),
        ("GET /v1/events/x HTTP/1.1", "", 404),
        ("PATCH /v1/beads HTTP/1.1", "", 405),
    ],
)
def test_bad_requests_have_their_status(box: ApiBox, head: str, body: str, status: int) -> None:
    """Each refusal is a problem document with its own status."""
    answer = ask(box.plan.api.port, f"{head}\nAuthorization: Bearer {TOKEN}", body.encode())
    assert answer.status == status
    problem = json.loads(answer.body)
    assert problem["status"] == status
    assert problem["type"] == f"urn:agentbox:problem:{problem['code']}"
