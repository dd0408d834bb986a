"""What ends when a user is disabled or gets another role, and when a token is revoked."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.api_box import ApiBox
from support.signed_in import Browser, signed_in

from agentbox.client import ApiError, BoxClient
from agentbox.contracts.roles import SCOPES_OF

_NAMES = iter(f"leaver{number}" for number in range(1000))


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


@pytest.mark.timed
def test_a_disabled_user_is_out_within_a_second(
    box: ApiBox, client: BoxClient, new_user: Callable[[str], str]
) -> None:
    """Token, session, code, and the streams that each has open; none comes back with the user."""
    name = new_user("reviewer")
    value = user_token(client, name, "events:read")
    page = signed_in(box, name)
    code = client.users.make_code(name).code
    ended: dict[str, float] = {}
    followers = [
        threading.Thread(target=_follow, args=(page.url, headers, ended, kind))
        for kind, headers in (
            ("token", {"Authorization": f"Bearer {value}"}),
            ("session", page.headers()),
        )
    ]
    for follower in followers:
        follower.start()
    while len(ended) < 2:  # both are open: 0.0
        time.sleep(0.01)
    client.users.disable(name)
    disabled = time.monotonic()
    for follower in followers:
        follower.join(10)
    assert all(0 < at - disabled + 0.05 < 1 for at in ended.values()), (disabled, ended)
    with box.client(value) as own:
        assert refused(own.events.head) == (401, "unauthenticated")
        assert page.send("GET", "/v1/beads").status_code == 401
        assert Browser(box.url).sign_in(code=code).status_code == 401
        assert refused(lambda: client.users.make_code(name))[0] == 404
        client.users.enable(name)
        assert refused(own.events.head) == (401, "unauthenticated")
        assert page.send("GET", "/v1/beads").status_code == 401
    page.http.close()


def _follow(url: str, headers: dict[str, str], ended: dict[str, float], kind: str) -> None:
    """Notes when the stream ends, after 0.0 once it is open."""
    import httpx

    try:
        with httpx.stream("GET", f"{url}/v1/events/stream", headers=headers, timeout=20) as lines:
            assert lines.status_code == 200
            for _ in lines.iter_bytes():
                ended.setdefault(kind, 0.0)
    except httpx.TransportError:
        pass
    ended[kind] = time.monotonic()


def test_a_role_that_is_narrowed_ends_what_it_no_longer_allows(
    box: ApiBox, client: BoxClient, new_user: Callable[[str], str]
) -> None:
    """A reviewer follows the journal, a viewer may not."""
    name = new_user("reviewer")
    ended: dict[str, float] = {}
    with signed_in(box, name) as page:
        follower = threading.Thread(
            target=_follow, args=(page.url, page.headers(), ended, "session")
        )
        follower.start()
        while not ended:
            time.sleep(0.01)
        client.users.set_role(name, "reviewer")
        follower.join(0.5)
        assert follower.is_alive()
        client.users.set_role(name, "viewer")
        follower.join(5)
        assert not follower.is_alive()
        assert page.send("GET", "/v1/beads").status_code == 200


def test_a_wider_role_ends_what_was_got_with_the_narrower(
    box: ApiBox, client: BoxClient, new_user: Callable[[str], str]
) -> None:
    """Who may admit viewers can sign in as one; a later admin of that name is not handed over. A
    token keeps its scopes, since only an admin makes it."""
    name = new_user("viewer")
    value = user_token(client, name, "beads:read")
    scopes = ("users:admin", *sorted(SCOPES_OF["viewer"]))
    with box.client(client.tokens.create("admits", scopes).value) as admits:
        page = Browser(box.url)
        page.sign_in(code=admits.users.make_code(name).code)
        code = admits.users.make_code(name).code
    assert page.send("GET", "/v1/beads").status_code == 200
    client.users.set_role(name, "admin")
    assert page.send("GET", "/v1/beads").status_code == 401
    assert page.sign_in(code=code).status_code == 401
    with box.client(value) as own:
        own.beads.list()
        assert refused(own.tokens.list) == (403, "permission-denied")
    page.http.close()


def test_a_revoked_token_ends_its_streams(box: ApiBox, client: BoxClient) -> None:
    """A token of nobody, too."""
    made = client.tokens.create("follows", ("events:read",))
    ended: dict[str, float] = {}
    headers = {"Authorization": f"Bearer {made.value}"}
    follower = threading.Thread(target=_follow, args=(box.url, headers, ended, "token"))
    follower.start()
    while not ended:
        time.sleep(0.01)
    client.tokens.revoke(made.id)
    follower.join(5)
    assert not follower.is_alive()
