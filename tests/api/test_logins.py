"""Sessions of people: who sees and ends them, when they end, and what the journal has of them."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.api_box import TOKEN, ApiBox, api_plan
from support.signed_in import (
    Browser,
    login_counts,
    signed_in,
    signed_in_operator,
    without_agents,
)

from agentbox.client import ApiError, BoxClient

_NAMES = iter(f"someone{number}" for number in range(1000))


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


def test_a_person_ends_own_sessions_and_an_admin_all(
    box: ApiBox, client: BoxClient, name: str
) -> None:
    """The others' are not even shown."""
    with (
        signed_in(box, name) as page,
        signed_in(box, name) as second,
        signed_in_operator(box) as op,
    ):
        own = [one["id"] for one in page.send("GET", "/v1/logins").json()["items"]]
        assert sorted(own) == sorted([page.session, second.session])
        assert page.send("DELETE", f"/v1/logins/{op.session}").status_code == 404
        assert op.send("GET", "/v1/session").status_code == 200
        assert page.send("DELETE", f"/v1/logins/{second.session}").status_code == 204
        assert second.send("GET", "/v1/session").status_code == 401
        assert op.session in [one.id for one in client.logins.list().items]
        client.logins.end(op.session)
        assert op.send("GET", "/v1/session").status_code == 401
        with pytest.raises(ApiError) as caught:
            client.logins.end(op.session)
        assert caught.value.status == 404


def test_a_user_has_ten_sessions_at_most(box: ApiBox, client: BoxClient, name: str) -> None:
    """The one that was used least recently ends."""
    pages = [signed_in(box, name) for _ in range(10)]
    assert pages[0].send("GET", "/v1/session").status_code == 200
    pages.append(signed_in(box, name))
    answers = [page.send("GET", "/v1/session").status_code for page in pages]
    assert answers == [200, 401, *[200] * 9]
    for page in pages:
        page.http.close()


@pytest.mark.timed
def test_a_session_ends_by_the_clock(own_box: Callable[..., ApiBox]) -> None:
    """Without use, and in all; a call that is open then ends too. The times are shorter here than
    the manifest allows."""
    base = without_agents(api_plan())
    api = replace(base.api, session_idle_seconds=2, session_seconds=4)
    box = own_box(orchestrator=False, plan=replace(base, api=api))
    with signed_in_operator(box) as used, signed_in_operator(box) as idle:
        began = time.monotonic()
        while used.send("GET", "/v1/session").status_code == 200:
            assert time.monotonic() - began < 10
            if 2.5 < time.monotonic() - began < 3.5:
                assert idle.send("GET", "/v1/session").status_code == 401
            time.sleep(0.1)
        assert 3.5 < time.monotonic() - began < 5
        assert used.send("GET", "/v1/logins", {"Authorization": f"Bearer {TOKEN}"}).json() == {
            "items": []
        }


def test_another_admin_token_ends_the_operators_sessions(own_box: Callable[..., ApiBox]) -> None:
    """They were the former token's; users' stay."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        client.users.add("ann", "viewer")
    with signed_in_operator(box) as operator, signed_in(box, "ann") as ann:
        box.stop()
        box.paths.api_key.write_text("another-admin-token")
        box.start()
        assert operator.send("GET", "/v1/session").status_code == 401
        assert ann.send("GET", "/v1/session").status_code == 200


def test_damaged_rows_are_no_session(own_box: Callable[..., ApiBox]) -> None:
    """Nor users; the others are."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        for one in ("ann", "bob", "cem"):
            client.users.add(one, "viewer")
    pages = [signed_in(box, one) for one in ("ann", "bob", "cem")]
    box.stop()
    with sqlite3.connect(box.paths.state_secrets / "access.db") as db:
        db.execute("UPDATE users SET role = 'root' WHERE name = 'ann'")
        db.execute("UPDATE sessions SET expires_at = 'never' WHERE user = 'bob'")
    box.start()
    answers = [page.send("GET", "/v1/session").status_code for page in pages]
    assert answers == [401, 401, 200]
    with box.client() as client, pytest.raises(ApiError):
        client.users.add("ann", "viewer")  # the name stays that of the damaged row
    for page in pages:
        page.http.close()


def test_what_people_do_is_journalled(box: ApiBox, client: BoxClient, name: str) -> None:
    """Sign-in, each write with its outcome, refusals, sign-out; no read, and nothing of programs."""
    client.users.set_role(name, "operator")
    with signed_in(box, name) as page:
        made = page.send("POST", "/v1/beads/epics", json={"title": "x"}).json()
        page.send("GET", "/v1/beads")
        page.send("POST", f"/v1/beads/{made['id']}/close", json={"outcome": "completed"})
        page.send("POST", "/v1/drain")
        page.send("GET", "/v1/beads", {"Sec-Fetch-Site": "cross-site"})
        session = page.session
        page.send("DELETE", "/v1/session")
    query = {"limit": 1000, "types": "operator.*"}
    rows = client.call("read_events", query=query)["events"]
    who = f"urn:agentbox:user:{name}"
    told = [
        (row["type"], row["data"].get("route", ""), row["data"].get("outcome"))
        for row in rows
        if row["data"].get("session") == session
    ]
    assert told[0] == ("operator.signin", "", "ok")
    assert told[1] == ("operator.action", "create_epic", "ok")
    assert told[2][:2] == ("operator.action", "close_bead")
    assert told[2][2] != "ok"  # it is not claimed
    assert told[3] == ("operator.refused", "drain", "permission-denied")
    assert ("operator.signout", "", "ok") in told
    assert ("operator.action", "list_beads") not in [one[:2] for one in told]
    action = next(
        row
        for row in rows
        if row["data"].get("session") == session and row["type"] == "operator.action"
    )
    assert action["data"]["principal"] == who
    assert action["data"]["role"] == "operator"
    assert action["data"]["resource"] == "/v1/beads/epics"
    assert action["trace_id"]
    crossed = [row["data"]["outcome"] for row in rows if row["type"] == "operator.refused"]
    assert "cross-site" in crossed


def test_refusals_do_not_flood_the_journal(own_box: Callable[..., ApiBox]) -> None:
    """At most 60 events a minute; the counter has all."""
    box = own_box(orchestrator=False)
    with box.client() as client, Browser(box.url) as page:
        for _ in range(200):
            page.sign_in(code="ann~wrong")
        rows = client.call("read_events", query={"limit": 1000, "types": "operator.refused"})
        assert len(rows["events"]) == 60
        counts = login_counts(box)
        assert (counts["refused"], counts["rate-limited"]) == (5, 195)
