"""Named tokens: scopes, expiry, revocation, bindings, and what is stored of them."""

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import pytest
from helpers import until
from support.api_box import TOKEN, ApiBox

from agentbox.client import ApiError, BoxClient
from agentbox.client.transport import build_call


@pytest.fixture
def make(client: BoxClient) -> Callable[..., dict[str, Any]]:
    """Creates a token with a name of its own."""

    def made(*scopes: str, **more: Any) -> dict[str, Any]:
        body = {"name": f"t-{uuid.uuid4().hex[:8]}", "scopes": list(scopes), **more}
        found: dict[str, Any] = client.call("create_token", body=body)
        return found

    return made


@pytest.fixture
def holder(box: ApiBox, make: Callable[..., dict[str, Any]]) -> Iterator[Callable[..., BoxClient]]:
    """A client with a new token."""
    opened: list[BoxClient] = []

    def client_with(*scopes: str, **more: Any) -> BoxClient:
        opened.append(box.client(make(*scopes, **more)["value"]))
        return opened[-1]

    yield client_with
    for one in opened:
        one.close()


def refused(call: Callable[[], object]) -> tuple[int, str, Any]:
    """Status, code and the scope that was missing."""
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.status, caught.value.code, caught.value.problem.get("scope")


def test_a_token_does_what_its_scopes_say(holder: Callable[..., BoxClient]) -> None:
    """Its name is recorded in what it writes; it creates no tokens unless it is an admin."""
    reader, writer = holder("beads:read"), holder("beads:write", "beads:read")
    bead = writer.call("create_epic", body={"title": "x"})
    assert bead["creator"].startswith("urn:agentbox:token:t-")
    assert reader.call("show_bead", {"id": bead["id"]})["title"] == "x"
    assert refused(lambda: reader.call("create_epic", body={"title": "x"})) == (
        403,
        "permission-denied",
        "beads:write",
    )
    assert refused(lambda: writer.call("list_tokens")) == (403, "permission-denied", "admin")
    assert (
        refused(lambda: writer.call("create_epic", body={"title": "x", "creator": "her"}))[0] == 403
    )
    assert "items" in holder("admin").call("list_tokens")


def test_the_value_is_shown_once_and_kept_as_a_hash(
    box: ApiBox, client: BoxClient, make: Callable[..., Any]
) -> None:
    """No listing, file, journal record or log line has it."""
    made = make("beads:read")
    assert made["value"].startswith("abx_")
    assert len(made["value"]) > 40
    listed = next(item for item in client.call("list_tokens")["items"] if item["id"] == made["id"])
    assert listed == {name: value for name, value in made.items() if name != "value"}
    client.call("revoke_token", {"id": make("beads:read")["id"]})
    secret = made["value"].encode()
    grant_set = [
        path
        for path in box.paths.prefix.rglob("*")
        if path.is_file() and secret in path.read_bytes()
    ]
    assert grant_set == []
    assert (box.paths.state_secrets / "access.db").stat().st_mode & 0o077 == 0
    told = [
        event["data"]
        for event in client.call("read_events", query={"limit": 1000, "types": "token.*"})["events"]
    ]
    assert {
        "id": made["id"],
        "name": made["name"],
        "scopes": ["beads:read"],
        "by": "urn:agentbox:operator",
    } in told


def test_a_revoked_token_is_refused_at_once(
    box: ApiBox, client: BoxClient, make: Callable[..., Any]
) -> None:
    """The next call is 401, on a connection that worked before; revoking again is 404."""
    made = make("beads:read")
    with box.client(made["value"]) as holder:
        holder.call("list_beads")
        client.call("revoke_token", {"id": made["id"]})
        assert refused(lambda: holder.call("list_beads"))[:2] == (401, "unauthenticated")
    assert refused(lambda: client.call("revoke_token", {"id": made["id"]}))[0] == 404
    assert made["id"] not in [item["id"] for item in client.call("list_tokens")["items"]]


def test_a_token_revokes_itself(
    box: ApiBox,
    client: BoxClient,
    make: Callable[..., Any],
    holder: Callable[..., BoxClient],
) -> None:
    """It needs no scope, and reaches no other; the operator's own has no record to revoke."""
    made, other = make("beads:read"), holder("beads:read")
    with box.client(made["value"]) as own:
        own.tokens.revoke_self()
        assert refused(lambda: own.call("list_beads"))[:2] == (401, "unauthenticated")
        assert refused(own.tokens.revoke_self)[0] == 401
    other.call("list_beads")
    assert made["id"] not in [item["id"] for item in client.call("list_tokens")["items"]]
    assert refused(client.tokens.revoke_self)[0] == 403
    query = {"limit": 1000, "types": "token.revoked"}
    told = [event["data"] for event in client.call("read_events", query=query)["events"]]
    (by,) = [data["by"] for data in told if data["id"] == made["id"]]
    assert by == f"urn:agentbox:token:{made['name']}"


def status_of(client: BoxClient) -> int:
    """Of a call that the token's scopes allow."""
    return client.send(build_call("list_beads"), accepted=(401,)).status_code


@pytest.mark.timed
def test_a_token_ends_when_it_was_said_to(holder: Callable[..., BoxClient]) -> None:
    """Before that it works, after that it is 401."""
    brief = holder("beads:read", ttl_s=2)
    began = time.monotonic()
    brief.call("list_beads")
    until(lambda: status_of(brief) == 401)
    assert 1.5 < time.monotonic() - began < 5


def test_bindings_hold_in_every_route(client: BoxClient, holder: Callable[..., BoxClient]) -> None:
    """Outside its prefix a token reads, writes, lists and finds nothing; its events have its source."""
    client.pods.write("theirs/x", b"secret")
    client.memory.store("k", "secret", namespace="theirs")
    bound = holder(
        "pods:read", "pods:write", "memory:read", "memory:write", "events:write", "events:read",
        pod_prefix="mine/", memory_prefix="mine-", event_source="urn:x:mine",
    )  # fmt: skip
    bound.pods.write("mine/x", b"1")
    assert (bound.pods.read("mine/x"), bound.pods.list("mine/").items[0].path) == (b"1", "mine/x")
    pods, memory = bound.pods, bound.memory
    for call in (
        lambda: pods.read("theirs/x"), lambda: pods.head("theirs/x"), lambda: pods.write("theirs/x", b""),
        lambda: pods.patch("theirs/x", b"[]"), lambda: pods.delete("theirs/x"), lambda: pods.list(""),
        lambda: bound.call("options_pod", {"path": "theirs/x"}),
        lambda: memory.retrieve("k", namespace="theirs"), lambda: memory.store("k", 1, namespace="theirs"),
        lambda: memory.delete("k", namespace="theirs"), lambda: memory.list(namespace="theirs"),
        lambda: memory.search("secret", namespaces=("mine-1", "theirs")), lambda: memory.search("secret"),
        lambda: memory.stats(), lambda: memory.stats("theirs"),
    ):  # fmt: skip
        assert refused(call)[0] == 403
    assert memory.store("k", 1, namespace="mine-1")[1]
    assert memory.stats("mine-1").entries == 1

    def append(**event: Any) -> Any:
        return bound.call(
            "append_events", body={"events": [{"type": "test.x", "data": {}, **event}]}
        )

    for event in ({}, {"source": "urn:x:mine"}):
        seq = append(**event)["first_seq"]
        assert bound.call("show_event", {"seq": str(seq)})["source"] == "urn:x:mine"
    assert refused(lambda: append(source="urn:x:theirs"))[0] == 403


def test_a_token_may_ask_so_often(holder: Callable[..., BoxClient]) -> None:
    """Past its rate 429 with Retry-After; soon after it is served again; a token without a rate is not counted."""
    slow, free = holder("beads:read", rate=5), holder("beads:read")
    answers = [slow.send(build_call("list_beads"), accepted=(429,)) for _ in range(12)]
    assert {answer.status_code for answer in answers[:5]} == {200}
    refusals = [answer for answer in answers if answer.status_code == 429]
    assert len(refusals) >= 3
    assert (refusals[0].json()["code"], refusals[0].json()["limit"]) == ("rate-limited", "5/s")
    assert int(refusals[0].headers["retry-after"]) >= 1
    until(lambda: slow.send(build_call("list_beads"), accepted=(429,)).status_code == 200)
    assert {free.send(build_call("list_beads")).status_code for _ in range(30)} == {200}


def test_a_creation_may_be_sent_twice(holder: Callable[..., BoxClient]) -> None:
    """The same Idempotency-Key of the same caller returns the same bead, 201 and then 200; another
    caller's returns another."""
    one, other = holder("beads:write", "beads:read"), holder("beads:write", "beads:read")
    key = {"Idempotency-Key": uuid.uuid4().hex}
    made = [
        client.send(build_call("create_epic", body={"title": "x"}, headers=key))
        for client in (one, one, other)
    ]
    assert [answer.status_code for answer in made] == [201, 200, 201]
    assert made[0].json() == made[1].json()
    assert made[2].json()["id"] != made[0].json()["id"]
    child = [
        one.send(
            build_call(
                "create_child", {"id": made[0].json()["id"]}, body={"title": "y"}, headers=key
            )
        )
        for _ in "ab"
    ]
    assert child[0].json()["id"] == child[1].json()["id"] != made[0].json()["id"]
    long = {"Idempotency-Key": "x" * 129}
    assert refused(lambda: one.call("create_epic", body={"title": "x"}, headers=long))[:2] == (
        400,
        "validation",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": []}, {"scopes": ["core"]}, {"scopes": ["beads:own"]}, {"name": ""}, {"name": "Übel"}, {"name": "a" * 65},
        {"ttl_s": 0}, {"ttl_s": -5}, {"ttl_s": True}, {"pod_prefix": "a b"}, {"event_source": "a\nb"}, {"value": "mine"}, {"rate": -1},
    ],
)  # fmt: skip
def test_what_cannot_be_a_token(client: BoxClient, wrong: dict[str, Any]) -> None:
    """400 with the pointer; no token is created."""
    before = client.call("list_tokens")
    body = {"name": "x", "scopes": ["beads:read"], **wrong}
    assert refused(lambda: client.call("create_token", body=body))[:2] == (400, "validation")
    assert client.call("list_tokens") == before


def test_tokens_outlive_the_api(own_box: Callable[..., ApiBox]) -> None:
    """After SIGKILL and a new start the same token works, and what was revoked is still refused."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        kept, gone = (
            client.call("create_token", body={"name": name, "scopes": ["beads:read"]})
            for name in ("kept", "gone")
        )
        client.call("revoke_token", {"id": gone["id"]})
    box.kill()
    box.start()
    with box.client(kept["value"]) as holder, box.client(gone["value"]) as revoked:
        holder.call("list_beads")
        assert refused(lambda: revoked.call("list_beads"))[0] == 401


def test_a_damaged_store_refuses_its_tokens_only(own_box: Callable[..., ApiBox]) -> None:
    """The operator's token still works; the routes of tokens report the error."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        made = client.call("create_token", body={"name": "x", "scopes": ["beads:read"]})
    box.stop()
    for name in ("access.db-wal", "access.db-shm"):
        (box.paths.state_secrets / name).unlink(missing_ok=True)
    (box.paths.state_secrets / "access.db").write_bytes(b"no database" * 1000)
    box.start()
    with box.client(TOKEN) as client, box.client(made["value"]) as holder:
        assert refused(lambda: holder.call("list_beads"))[0] == 401
        assert refused(lambda: client.call("list_tokens"))[:2] == (502, "backend-error")
        assert client.call("list_beads")["items"] == []


def test_a_damaged_row_is_no_token_and_the_others_are(own_box: Callable[..., ApiBox]) -> None:
    """Text that is not valid UTF-8, invalid times: rejected, and left unchanged."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        made = [
            client.call("create_token", body={"name": f"t{n}", "scopes": ["beads:read"]})
            for n in range(5)
        ]
    box.stop()
    with apsw.Connection(str(box.paths.state_secrets / "access.db")) as db:
        bad = "CAST(x'ff41' AS TEXT)"
        changes = (f"expires_at = {bad}", "expires_at = 'never'", "created_at = '{'", f"id = {bad}")
        for change, token in zip(changes, made, strict=False):
            db.execute(f"UPDATE tokens SET {change} WHERE id = ?", (token["id"],))
    box.start()
    for token in made[:4]:
        with box.client(token["value"]) as holder:
            assert refused(lambda holder=holder: holder.call("list_beads"))[0] == 401
    with box.client(made[4]["value"]) as holder, box.client(TOKEN) as client:
        assert holder.call("list_beads")["items"] == []
        assert [one["id"] for one in client.call("list_tokens")["items"]] == [made[4]["id"]]
    with apsw.Connection(str(box.paths.state_secrets / "access.db")) as db:
        assert list(db.execute("SELECT count(*) FROM tokens")) == [(5,)]
