"""Sessions of people: what makes one, what a request with it must have, and what ends it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from support.api_box import TOKEN, ApiBox, api_plan
from support.signed_in import (
    Browser,
    login_counts,
    problem,
    signed_in,
    signed_in_operator,
    without_agents,
)

from agentbox.client import BoxClient
from agentbox.plan.names import GATEWAY

_NAMES = iter(f"person{number}" for number in range(1000))


@pytest.fixture(scope="module")
def box(prefix: Any) -> Iterator[ApiBox]:
    """A box without agents: a session needs none."""
    with ApiBox(prefix, orchestrator=False) as running:
        yield running


@pytest.fixture
def name(client: BoxClient) -> str:
    """A new user, a reviewer."""
    found = next(_NAMES)
    client.users.add(found, "reviewer")
    return found


def test_both_halves_are_needed(box: ApiBox, name: str) -> None:
    """The cookie alone is good for nothing, not even a GET; nor is the key alone."""
    with signed_in(box, name) as page, signed_in(box, name) as other:
        assert page.send("GET", "/v1/beads").status_code == 200
        for headers in (
            {"Agentbox-Session-Key": None},
            {"Agentbox-Session-Key": ""},
            {"Agentbox-Session-Key": other.key},
            {"Agentbox-Session-Key": page.cookie},
            {"Cookie": None},
            {"Cookie": f"agentbox_session={other.cookie}"},
            {"Cookie": f"agentbox_session={page.key}"},
        ):
            assert problem(page.send("GET", "/v1/beads", headers)) == (401, "unauthenticated")
        bearer = {"Authorization": f"Bearer {page.key}"}
        assert page.send("GET", "/v1/beads", bearer).status_code == 401


def test_a_cookie_of_another_port_changes_nothing(box: ApiBox, name: str) -> None:
    """Another program of the host can add cookies of the same name, before or after it."""
    with signed_in(box, name) as page, signed_in(box, name) as attacker:
        for cookies in (
            f"agentbox_session={attacker.cookie}; agentbox_session={page.cookie}",
            f"agentbox_session={page.cookie}; agentbox_session={attacker.cookie}",
            f"a=1; agentbox_session=; agentbox_session={page.cookie}; b",
        ):
            answer = page.send("GET", "/v1/session", {"Cookie": cookies})
            assert answer.json()["session"]["id"] == page.session


def test_a_request_of_another_origin_is_refused(box: ApiBox, name: str) -> None:
    """As Chromium sends it: a page of another port, of another site, a form, a link, an old browser."""
    with signed_in(box, name) as page:
        port = box.plan.api.port
        for headers in (
            {"Sec-Fetch-Site": "same-site", "Origin": f"http://127.0.0.1:{port + 1}"},
            {"Sec-Fetch-Site": "same-site", "Origin": None},
            {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
            {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
            {"Sec-Fetch-Site": "none", "Origin": None},
            {"Sec-Fetch-Site": None},
            {"Sec-Fetch-Site": None, "Origin": None},
            {"Sec-Fetch-Site": "same-origin, same-origin"},
            {"Origin": "null"},
            {"Origin": f"http://127.0.0.1:{port + 1}"},
            {"Origin": f"https://127.0.0.1:{port}"},
            {"Origin": f"http://localhost:{port}"},
            {"Origin": f"http://127.0.0.1:{port}.evil.example"},
        ):
            for method, path in (("GET", "/v1/beads"), ("POST", "/v1/beads/epics")):
                assert problem(page.send(method, path, headers)) == (403, "cross-site"), headers
        assert page.send("GET", "/v1/beads", {"Origin": None}).status_code == 200
        # A token is as before, from wherever, whatever cookies there are.
        bearer = {"Authorization": f"Bearer {TOKEN}", "Sec-Fetch-Site": None, "Origin": None}
        assert page.send("GET", "/v1/beads", bearer).status_code == 200
        # Pages without data of the box and probes look at no cookie.
        link = {"Sec-Fetch-Site": "none", "Origin": None, "Agentbox-Session-Key": None}
        assert page.send("GET", "/ui/review", link).status_code == 200
        assert page.send("GET", "/livez", link).status_code == 200


def test_a_sign_in_of_another_origin_is_refused(box: ApiBox, client: BoxClient, name: str) -> None:
    """So that no page signs a person in as somebody else; the code is still good then."""
    code = client.users.make_code(name).code
    with Browser(box.url) as page:
        for headers in (
            {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
            {"Sec-Fetch-Site": None},
        ):
            assert problem(page.sign_in(headers, code=code)) == (403, "cross-site")
        assert page.sign_in(code=code).status_code == 201


def test_the_cookie_is_what_a_browser_keeps_to_itself(
    box: ApiBox, client: BoxClient, name: str
) -> None:
    """Not for scripts, nor for requests of other sites; signing out removes it."""
    with Browser(box.url) as page:
        made = page.sign_in(code=client.users.make_code(name).code).headers["set-cookie"]
        value, *attributes = made.split("; ")
        assert value.startswith("agentbox_session=")
        assert len(value) > 50
        assert attributes == ["Path=/", "HttpOnly", "SameSite=Strict"]
        gone = page.send("DELETE", "/v1/session")
        assert gone.status_code == 204
        assert "Max-Age=0" in gone.headers["set-cookie"]
        assert problem(page.send("GET", "/v1/session")) == (401, "unauthenticated")


def test_over_https_the_cookie_has_its_prefix(own_box: Callable[..., ApiBox]) -> None:
    """`__Host-` and Secure, and only the https origin is the box's own there."""
    base = api_plan()
    api = replace(base.api, public_base="https://box.example")
    box = own_box(orchestrator=False, plan=replace(without_agents(base), api=api))
    https = {"Host": "box.example", "Origin": "https://box.example"}
    with Browser(box.url) as page:
        made = page.sign_in({**https, "Origin": "http://box.example"}, token=TOKEN)
        assert problem(made) == (403, "cross-site")
        made = page.sign_in(https, token=TOKEN)
        assert made.status_code == 201
        cookie = made.headers["set-cookie"]
        assert cookie.startswith("__Host-agentbox_session=")
        assert "; Secure" in cookie
        sent = {**https, "Cookie": f"__Host-agentbox_session={page.cookie}"}
        assert page.send("GET", "/v1/session", sent).status_code == 200
        unprefixed = {**https, "Cookie": f"agentbox_session={page.cookie}"}
        assert page.send("GET", "/v1/session", unprefixed).status_code == 401


def test_a_code_is_good_once(own_box: Callable[..., ApiBox]) -> None:
    """Also for four sign-ins at once; a new code of the user ends the earlier."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        client.users.add("ann", "viewer")
        first, second = (client.users.make_code("ann").code for _ in range(2))

    def sign_in(_number: int) -> int:
        with Browser(box.url) as page:
            return page.sign_in(code=second).status_code

    with Browser(box.url) as page:
        assert page.sign_in(code=first).status_code == 401
    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(sign_in, range(4))) == [201, 401, 401, 401]


def test_sessions_are_of_whose_credential_it_was(box: ApiBox, client: BoxClient, name: str) -> None:
    """A user's token makes a session with the token's scopes only; both end with it."""
    made = client.tokens.create("narrow", ("beads:read",), user=name)
    nobody = client.tokens.create("nobody", ("beads:read",))
    with Browser(box.url) as page, Browser(box.url) as other:
        page.sign_in(token=made.value)
        identity = page.send("GET", "/v1/session").json()
        assert identity["principal"] == f"urn:agentbox:user:{name}"
        assert identity["scopes"] == ["beads:read"]
        assert page.send("GET", "/v1/agents").status_code == 403
        # It makes no wider one.
        code = page.send("POST", "/v1/session/code").json()["code"]
        with Browser(box.url) as third:
            third.sign_in(code=code)
            assert third.send("GET", "/v1/agents").status_code == 403
        assert other.sign_in(token=nobody.value).status_code == 201
        assert other.send("GET", "/v1/session").json()["role"] is None
        client.tokens.revoke(made.id)
        client.tokens.revoke(nobody.id)
        for ended in (page, other):
            assert problem(ended.send("GET", "/v1/beads")) == (401, "unauthenticated")


def test_an_operators_session_is_the_operators(box: ApiBox, client: BoxClient) -> None:
    """All scopes; also by a code that the operator makes for itself."""
    with signed_in_operator(box) as page:
        identity = page.send("GET", "/v1/session").json()
        assert (identity["principal"], identity["role"]) == ("urn:agentbox:operator", "admin")
        assert page.send("GET", "/v1/users").status_code == 200
    with Browser(box.url) as page:
        code = client.logins.make_own_code().code
        assert code.startswith("operator~")
        assert page.sign_in(code=code).status_code == 201
        assert page.send("GET", "/v1/users").status_code == 200


def test_programs_make_no_session(own_box: Callable[..., ApiBox]) -> None:
    """The tokens of the box's own programs are not people's."""
    box = own_box(orchestrator=False)
    file = box.paths.token(GATEWAY)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("a-program's-token")
    with Browser(box.url) as page:
        assert page.sign_in(token="a-program's-token").status_code == 401


def test_five_failures_a_minute(own_box: Callable[..., ApiBox]) -> None:
    """By name from anywhere and by address for any name, then 429; a good credential then, too."""
    box = own_box(orchestrator=False)
    with box.client() as client, Browser(box.url) as page:
        client.users.add("ann", "viewer")
        for _ in range(5):
            assert problem(page.sign_in(code="ann~wrong")) == (401, "unauthenticated")
        late = page.sign_in(code=client.users.make_code("ann").code)
        assert problem(late) == (429, "rate-limited")
        assert 1 <= int(late.headers["retry-after"]) <= 60
        assert problem(page.sign_in(token=TOKEN)) == (429, "rate-limited")
        client.users.list()  # tokens of programs are not stopped by it
        counts = login_counts(box)
        assert counts == {"ok": 0, "refused": 5, "rate-limited": 2, "cross-site": 0}


def test_malformed_sign_ins(box: ApiBox) -> None:
    """400, and no session."""
    with Browser(box.url) as page:
        for body in (
            {},
            {"token": TOKEN, "code": "x"},
            {"token": None},
            {"code": ""},
            {"code": "x" * 257},
            {"code": "a b"},
            {"code": 1},
            {"token": TOKEN, "session": "mine"},
        ):
            answer = page.send("POST", "/v1/session", json=body)
            assert problem(answer) == (400, "validation"), body
            assert "set-cookie" not in answer.headers
        form = page.send("POST", "/v1/session", data={"token": TOKEN})
        assert form.status_code == 415


def test_no_half_is_stored(box: ApiBox, client: BoxClient, name: str) -> None:
    """Neither in a file, nor in the journal, nor in the log; nor is a code."""
    code = client.users.make_code(name).code
    with Browser(box.url) as page:
        page.sign_in(code=code)
        client.users.make_code(name)
        halves = [word.encode() for word in (page.cookie, page.key, code.partition("~")[2])]
        found = [
            path
            for path in box.paths.prefix.rglob("*")
            if path.is_file() and any(half in path.read_bytes() for half in halves)
        ]
        assert found == []


def test_a_session_cannot_be_fixed(box: ApiBox, client: BoxClient, name: str) -> None:
    """A sign-in takes over no value that the browser had, and leaves an earlier session as it was."""
    with signed_in(box, name) as page:
        cookie, key = page.cookie, page.key
        page.sign_in(code=client.users.make_code(name).code)
        assert page.cookie != cookie
        assert page.key != key
        chosen = {"Cookie": "agentbox_session=chosen", "Agentbox-Session-Key": "chosen"}
        page.sign_in(chosen, code=client.users.make_code(name).code)
        assert page.send("GET", "/v1/session", chosen).status_code == 401
