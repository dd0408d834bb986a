"""A client: its state machine, and what it does without its host."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import until
from meshes import Start, told
from support.api_box import ApiBox
from support.mesh import ENROLMENT, TOKEN_ENV, ManualBox, client_plan, host_plan
from support.ports import free_port

from agentbox.core.canonical import canonical_json
from agentbox.mesh.client.instance import load_or_create
from agentbox.mesh.client.transitions import TRANSITIONS
from agentbox.plan.model import Plan

TAKEN: dict[int, set[tuple[str, str]]] = {}


@pytest.fixture
def start(start: Start, directory: Path) -> Iterator[Start]:
    """As usual; the transitions in the logs are added to the table."""
    yield start
    for log in directory.glob("*/api.log"):
        for number, was, now in steps(log):
            TAKEN.setdefault(number, set()).add((was, now))


def mesh_of(box: ApiBox) -> dict[str, Any]:
    with box.client() as client:
        result: dict[str, Any] = client.call("mesh_status")
    return result


def slot_of(box: ApiBox, slot: str = "beads") -> dict[str, Any]:
    with box.client() as client:
        result: dict[str, Any] = client.health().adapters[slot].to_wire()
    return result


def in_state(box: ApiBox, state: str, seconds: float = 45) -> dict[str, Any]:
    """The status once the client is in that state and beads follow."""
    return until(lambda: (result := mesh_of(box))["state"] == state and result, seconds)


def steps(log: Path) -> list[tuple[int, str, str]]:
    """The transitions in the log."""
    result = []
    for line in log.read_text().splitlines():
        if '"mesh.transition"' in line:
            row = json.loads(line)
            result.append((row["number"], row["was"], row["now"]))
    return result


def test_a_client_lives_through_a_session(start: Start) -> None:
    """Registers, uses the host's beads, sends heartbeats, and deregisters; both sides report it."""
    host = start(host_plan())
    box = start(client_plan(host.url), wait=False)
    result = in_state(box, "active")
    assert result["slots"] == {"beads": host.url}
    assert slot_of(box)["state"] == "ok"
    with box.client() as client, host.client() as operator:
        bead = client.call("create_epic", body={"title": "shared"})
        assert bead["creator"] == "urn:agentbox:operator"
        there = operator.call("show_bead", {"id": bead["id"]})
        assert there["creator"] == f"urn:agentbox:box:{result['instance_id']}:urn:agentbox:operator"
        assert client.call("list_beads", query={"creator": "urn:agentbox:operator"})["items"] == [
            bead
        ]
        session = operator.call("mesh_sessions")["items"][0]
        until(lambda: operator.call("mesh_session", {"id": session["id"]})["beat"] >= 5, 15)
        shown = operator.call("mesh_session", {"id": session["id"]})
    assert shown["health"]["beads"] == "ok"
    assert abs(mesh_of(box)["skew_s"]) < 5
    box.stop()
    assert [row["session"] for row in told(host, "mesh.session.closed")] == [session["id"]]
    assert [number for number, _, _ in steps(box.log) if number != 8] == [1, 2, 7, 17, 18]


def test_a_host_that_dies_is_missed_and_found_again(start: Start) -> None:
    """SIGKILL: suspect, partitioned, and nothing in the box ends; after the host's restart the same
    session continues."""
    host = start(host_plan())
    box = start(client_plan(host.url), wait=False)
    before = in_state(box, "active")["session_id"]
    host.kill()
    in_state(box, "suspect", 5)
    in_state(box, "partitioned", 15)
    assert box.process is not None
    assert box.process.poll() is None
    host.start()
    assert in_state(box, "active")["session_id"] == before
    until(lambda: slot_of(box)["state"] == "ok")
    host.kill()
    in_state(box, "suspect", 5)
    host.start()
    in_state(box, "active", 5)
    assert {10, 11, 12, 13} <= {number for number, _, _ in steps(box.log)}
    kinds = ("mesh.beat_missed", "mesh.partitioned", "mesh.rejoined")
    until(lambda: all(told(box, kind, session=before) for kind in kinds))


def test_each_reason_of_an_end_is_followed(start: Start) -> None:
    """Evicted and expired join again; superseded does not; a lost registry is joined anew."""
    host = start(host_plan())
    box = start(client_plan(host.url), wait=False)
    first = in_state(box, "active")["session_id"]
    with host.client() as operator:
        operator.call("mesh_evict", {"id": first})
        second = until(
            lambda: (result := in_state(box, "active")["session_id"]) != first and result, 10
        )
        assert slot_of(box)["state"] == "ok"
        twin = ManualBox(host)
        twin.instance_id, twin.secret = _identity(box)
        twin.register()
        assert in_state(box, "refused")["reason"] == "superseded"
        assert slot_of(box)["state"] == "down"
        assert "no mesh session" in mesh_of(box)["slots"]["beads"]
        operator.call("mesh_evict", {"id": twin.session_id})
    reasons = ["evicted", "superseded"]  # in the journal soon after the state is shown
    until(lambda: [row["reason"] for row in told(box, "mesh.evicted")] == reasons)
    with box.client() as client:
        client.call("mesh_join")
    third = in_state(box, "active")["session_id"]
    assert len({first, second, third}) == 3
    host.stop()
    for name in ("sessions.db", "sessions.db-wal", "sessions.db-shm"):
        (host.paths.slot("mesh") / name).unlink(missing_ok=True)
    host.start()
    until(lambda: mesh_of(box)["session_id"] not in (None, third), 15)
    assert in_state(box, "active")
    assert {6, 14, 15} <= {number for number, _, _ in steps(box.log)}


def _identity(box: ApiBox) -> tuple[str, bytes]:
    result = load_or_create(box.paths.slot("mesh"))
    return result.id, result.secret


def test_who_is_refused_waits_and_who_finds_nobody_tries_again(start: Start) -> None:
    """A wrong token is refused until `join` is called; an unreachable host is retried by itself."""
    port_of_nobody = free_port()
    lonely = start(client_plan(f"http://127.0.0.1:{port_of_nobody}"), wait=False)
    host = start(host_plan())
    (host.paths.mounted_secrets / TOKEN_ENV).write_text("another token")
    host.stop()
    host.start()
    box = start(client_plan(host.url), wait=False)
    result = in_state(box, "refused")
    assert "token" in result["reason"]
    (host.paths.mounted_secrets / TOKEN_ENV).write_text(ENROLMENT)
    host.stop()
    host.start()
    with box.client() as client:
        client.call("mesh_join")
    in_state(box, "active")
    assert [number for number, _, _ in steps(box.log)][:4] == [1, 4, 6, 2]
    until(lambda: {3, 5} <= {number for number, _, _ in steps(lonely.log)})
    assert lonely.stop() == 0
    assert [number for number, _, _ in steps(lonely.log)][-2:] == [17, 18]


def test_what_the_host_offers_may_change(start: Start) -> None:
    """Another address is applied in the same session; contracts of another MAJOR end it, on both
    sides."""
    host = start(host_plan())
    box = start(client_plan(host.url), wait=False)
    before = in_state(box, "active")
    moved = replace(
        host.plan, api=replace(host.plan.api, public_base=f"http://127.0.0.1:{host.plan.api.port}/")
    )
    elsewhere = replace(
        moved, api=replace(moved.api, public_base=f"http://localhost:{host.plan.api.port}")
    )
    host.kill()
    _put_plan(host, elsewhere)
    host.start()
    until(lambda: "is on localhost" in mesh_of(box)["slots"]["beads"], 15)
    assert (mesh_of(box)["session_id"], mesh_of(box)["state"]) == (before["session_id"], "active")
    assert slot_of(box)["state"] == "down"
    host.kill()
    _put_plan(host, moved)
    host.start()
    until(lambda: slot_of(box)["state"] == "ok", 15)
    host.kill()
    with sqlite3.connect(host.paths.slot("mesh") / "sessions.db") as db:
        (document,) = db.execute(
            "SELECT document FROM sessions WHERE id = ?", (before["session_id"],)
        ).fetchone()
        told_then = json.loads(document)
        told_then["contracts"]["beads"] = "2.0.0"
        db.execute(
            "UPDATE sessions SET document = ? WHERE id = ?",
            (json.dumps(told_then), before["session_id"]),
        )
    host.start()
    result = in_state(box, "refused")
    assert result["mismatches"] == [{"slot": "beads", "ours": "1.0.0", "theirs": "2.0.0"}]
    assert {9, 16} <= {number for number, _, _ in steps(box.log)}


def _put_plan(box: ApiBox, plan: Plan) -> None:
    box.paths.plan.write_bytes(canonical_json(plan.to_json()))


def test_every_transition_was_taken() -> None:
    """The coverage table: the transitions in the logs of the boxes above, against all eighteen."""
    assert TAKEN.keys() == TRANSITIONS.keys()


def test_an_enrolment_token_that_no_header_holds(start: Start, directory: Path) -> None:
    """A client reports its own refusal with the reason. One whose token file is not text does not
    start, with one message. Neither content is shown."""
    box = start(
        client_plan(f"http://127.0.0.1:{free_port()}"),
        wait=False,
        secrets={TOKEN_ENV: "tökén-of-a-test"},
    )
    result = in_state(box, "refused", 15)
    assert "cannot send the token" in result["reason"]
    assert "tök" not in json.dumps(result) + box.log.read_text()
    assert "Traceback" not in box.log.read_text()
    box.stop()
    (box.paths.mounted_secrets / TOKEN_ENV).write_bytes(b"t\xf6k\xe9n-of-a-test")
    before = len(box.log.read_text())
    with pytest.raises(RuntimeError):
        box.start()
    (output,) = box.log.read_text()[before:].splitlines()
    assert output.startswith(f"cannot read secret {TOKEN_ENV}: it is not valid UTF-8. ")
