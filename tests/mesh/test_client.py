"""A client: its state machine, and what it does without its host (mesh.md 2, F4, F6, F7)."""

import json
import re
from typing import Any

from helpers import until
from meshes import Start, refusal, told

from agentbox.mesh.transitions import TRANSITIONS
from agentbox.testing.api_box import ApiBox
from agentbox.testing.mesh import client_plan, host_plan


def mesh_of(box: ApiBox) -> dict[str, Any]:
    with box.client() as client:
        found: dict[str, Any] = client.call("mesh_status")
    return found


def slot_of(box: ApiBox, slot: str = "beads") -> dict[str, Any]:
    with box.client() as client:
        found: dict[str, Any] = client.health()["adapters"][slot]
    return found


def in_state(box: ApiBox, state: str, seconds: float = 15) -> dict[str, Any]:
    """The status once the client is in that state and beads follow."""
    return until(lambda: (found := mesh_of(box))["state"] == state and found, seconds)


def steps(box: ApiBox) -> list[tuple[int, str, str]]:
    """The transitions that the log tells."""
    found = []
    for line in box.log.read_text().splitlines():
        if '"mesh.transition"' in line:
            row = json.loads(line)
            found.append((row["number"], row["was"], row["now"]))
    return found


def test_a_client_lives_through_a_session(start: Start) -> None:
    """Registers, uses the host's beads, beats, and leaves; both sides say so."""
    host = start(host_plan())
    box = start(client_plan(host.url), wait=False)
    found = in_state(box, "active")
    assert found["slots"] == {"beads": host.url}
    assert slot_of(box)["state"] == "ok"
    with box.client() as client, host.client() as operator:
        bead = client.call("create_epic", body={"title": "shared"})
        assert bead["creator"] == "urn:agentbox:operator"
        there = operator.call("show_bead", {"id": bead["id"]})
        assert there["creator"] == f"urn:agentbox:box:{found['instance_id']}:urn:agentbox:operator"
        assert client.call("list_beads", query={"creator": "urn:agentbox:operator"})["items"] == [bead]
        session = operator.call("mesh_sessions")["items"][0]
        until(lambda: operator.call("mesh_session", {"id": session["id"]})["beat"] >= 5, 15)
        shown = operator.call("mesh_session", {"id": session["id"]})
    assert shown["health"]["beads"] == "ok"
    assert abs(mesh_of(box)["skew_s"]) < 5
    box.stop()
    assert [row["session"] for row in told(host, "mesh.session.closed")] == [session["id"]]
    assert [number for number, _, _ in steps(box) if number != 8] == [1, 2, 7, 17, 18]
