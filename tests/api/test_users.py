"""Users: roles, names, the last admin, tokens of users, and what ends when a user is disabled."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.api_box import TOKEN, ApiBox
from support.signed_in import Browser, signed_in

from agentbox.client import ApiError, BoxClient
from agentbox.contracts.roles import ROLES, SCOPES_OF

_NAMES = iter(f"user{number}" for number in range(1000))


@pytest.fixture(scope="module")
def box(prefix: Any) -> Iterator[ApiBox]:
    """A box without agents: users need none."""
    with ApiBox(prefix, orchestrator=False) as running:
        yield running


@pytest.fixture
def new_user(client: BoxClient) -> Callable[[str], str]:
    """Adds a user with a role and a name of its own."""

    def add(role: str) -> str:
        name = next(_NAMES)
        client.users.add(name, role)
        return name

    return add


def user_token(client: BoxClient, name: str, *scopes: str) -> str:
    """A token of that user."""
    return client.tokens.create(f"{name}-t", scopes, user=name).value


def refused(call: Callable[[], object]) -> tuple[int, str]:
    """Status and code of a problem."""
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.status, caught.value.code


def test_a_user_has_the_scopes_of_the_role(
    box: ApiBox, client: BoxClient, new_user: Callable[[str], str]
) -> None:
    """Through a session: the principal is the user, and writes have it."""
    name = new_user("operator")
    with signed_in(box, name) as page:
        identity = page.send("GET", "/v1/session").json()
        assert identity["principal"] == f"urn:agentbox:user:{name}"
        assert identity["role"] == "operator"
        assert set(identity["scopes"]) == SCOPES_OF["operator"]
        made = page.send("POST", "/v1/beads/epics", json={"title": "x"})
        assert made.json()["creator"] == f"urn:agentbox:user:{name}"
        assert page.send("POST", "/v1/drain").status_code == 403
        client.users.set_role(name, "viewer")
        assert page.send("POST", "/v1/beads/epics", json={"title": "x"}).status_code == 403
        assert page.send("GET", "/v1/beads").status_code == 200


def test_names_and_roles_are_checked(client: BoxClient, new_user: Callable[[str], str]) -> None:
    """A name is used once, also after its user was disabled; that of the first admin token never."""
    name = new_user("viewer")
    client.users.disable(name)
    for taken in (name, "operator"):
        assert refused(lambda taken=taken: client.users.add(taken, "viewer")) == (409, "name-taken")
    for bad in ("", "A", "../x", "a b", "a~b", "x" * 65):
        assert refused(lambda bad=bad: client.users.add(bad, "viewer"))[0] == 400
    assert refused(lambda: client.users.add("fine", "root"))[0] == 400  # type: ignore[arg-type]
    assert refused(lambda: client.users.set_role("nobody", "viewer"))[0] == 404
    assert refused(lambda: client.users.disable("nobody"))[0] == 404
    assert name in [user.name for user in client.users.list().items]


def test_a_box_has_a_thousand_users_at_most(own_box: Callable[..., ApiBox]) -> None:
    """Disabled ones count, since their names stay reserved."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        client.users.add("first", "viewer")
        client.users.disable("first")
        for number in range(999):
            client.users.add(f"n{number}", "viewer")
        assert refused(lambda: client.users.add("one-more", "viewer")) == (507, "quota-exceeded")


def test_the_last_admin_stays(own_box: Callable[..., ApiBox]) -> None:
    """Neither disabled nor given another role; of two admins that end each other at once, one stays."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        client.users.add("ann", "admin")
        assert refused(lambda: client.users.disable("ann")) == (409, "last-admin")
        assert refused(lambda: client.users.set_role("ann", "operator")) == (409, "last-admin")
        for turn in range(10):
            other = f"bob{turn}"
            client.users.add(other, "admin")
            barrier = threading.Barrier(2)

            def end(name: str, barrier: threading.Barrier = barrier) -> int:
                with box.client() as own:
                    barrier.wait()
                    try:
                        own.users.disable(name)
                    except ApiError as error:
                        return error.status
                    return 200

            with ThreadPoolExecutor(2) as pool:
                answers = sorted(pool.map(end, ("ann", other)))
            assert answers == [200, 409]
            admins = [user.name for user in client.users.list().items if user.disabled_at is None]
            assert len(admins) == 1
            client.users.enable("ann")
            if other in admins:
                client.users.disable(other)


def test_a_token_of_a_user_has_at_most_the_scopes_of_the_role(
    box: ApiBox, client: BoxClient, new_user: Callable[[str], str]
) -> None:
    """When it is made, and after the role was narrowed; it acts as the user."""
    name = new_user("reviewer")
    make = client.tokens.create
    assert refused(lambda: make("t", ("beads:write",), user=name)) == (400, "validation")
    assert refused(lambda: make("t", ("admin",), user=name)) == (400, "validation")
    assert refused(lambda: make("t", ("beads:read",), user="nobody")) == (400, "validation")
    value = user_token(client, name, "beads:read", "events:read")
    with box.client(value) as own:
        assert own.logins.whoami().principal == f"urn:agentbox:user:{name}"
        own.events.head()
        client.users.set_role(name, "viewer")
        assert refused(own.events.head) == (403, "permission-denied")
        own.beads.list()


def test_who_may_admit_users_gives_no_scope_that_it_lacks(
    box: ApiBox, client: BoxClient, new_user: Callable[[str], str]
) -> None:
    """A token for users alone makes no admin, changes none, and gets no code of one."""
    admin, viewer = new_user("admin"), new_user("viewer")
    scopes = ("users:admin", *sorted(SCOPES_OF["viewer"]))
    value = client.tokens.create("admits", scopes).value
    with box.client(value) as own:
        own.users.add(next(_NAMES), "viewer")
        for role in ROLES[1:]:
            assert refused(lambda role=role: own.users.add(next(_NAMES), role))[0] == 403
            assert refused(lambda role=role: own.users.set_role(viewer, role))[0] == 403
        for act in (own.users.disable, own.users.enable, own.users.make_code):
            assert refused(lambda act=act: act(admin)) == (403, "permission-denied")
        assert refused(lambda: own.tokens.create("t", ("admin",)))[0] == 403
        own.users.make_code(viewer)


def test_users_are_kept(own_box: Callable[..., ApiBox]) -> None:
    """With their roles, sessions and tokens, after the program has started again; codes are not."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        client.users.add("ann", "admin")
        client.users.add("bob", "viewer")
        value = user_token(client, "bob", "beads:read")
        page = signed_in(box, "bob")
        code = client.users.make_code("bob").code
    box.stop()
    box.start()
    with box.client(TOKEN) as client, box.client(value) as own, page:
        assert [user.name for user in client.users.list().items] == ["ann", "bob"]
        own.beads.list()
        assert page.send("GET", "/v1/beads").status_code == 200
        assert Browser(box.url).sign_in(code=code).status_code == 401
        assert refused(lambda: client.users.disable("ann")) == (409, "last-admin")


def test_what_is_done_to_users_is_journalled(
    client: BoxClient, new_user: Callable[[str], str]
) -> None:
    """Who did it, and to whom."""
    name = new_user("viewer")
    client.users.set_role(name, "reviewer")
    client.users.make_code(name)
    client.users.disable(name)
    client.users.enable(name)
    query = {"limit": 1000, "types": "operator.user"}
    events = client.call("read_events", query=query)["events"]
    rows = [event["data"] for event in events if event["data"]["name"] == name]
    assert [(row["change"], row["role"]) for row in rows] == [
        ("added", "viewer"),
        ("role", "reviewer"),
        ("code made", "reviewer"),
        ("disabled", "reviewer"),
        ("enabled", "reviewer"),
    ]
    assert {row["by"] for row in rows} == {"urn:agentbox:operator"}
