"""RC-019: an orderly stop drains in order, in time, and is marked clean; a killed box is marked unclean at its next
boot, and its journal verifies.

Columns D and H.
"""

import time
from collections.abc import Callable
from typing import Any

import pytest
from harness.box import Box
from harness.waiting import wait_for


@pytest.fixture(scope="module")
def box(make_shared_box: Callable[..., Box]) -> Box:
    """A ready box, which each test ends and starts again."""
    made = make_shared_box()
    made.start()
    made.wait_ready()
    return made


def with_agent(box: Box) -> str:
    """A ready box gets an agent that runs as a task and does not end by itself; the task's id."""
    spec = {"name": "stays", "argv": ["/usr/bin/sleep", "1000"], "profile": "sandboxed"}
    answer = box.call("POST", "/v1/tasks", {"spec": spec, "timeout_s": 600})
    assert answer.status == 202, answer.body
    task: str = answer.json["task_id"]
    wait_for(
        lambda: box.call("GET", f"/v1/tasks/{task}").json["state"] == "running",
        10,
        "the agent runs",
    )
    return task


def verified(box: Box) -> dict[str, Any]:
    """The journal's own check; it is not empty."""
    report = box.call("POST", "/v1/events/verify", {})
    assert (report.status, report.json["ok"]) == (200, True), report.body
    assert report.json["last_seq"] >= 1
    found: dict[str, Any] = report.json
    return found


def moments_of_the_end(box: Box, since: int) -> list[str]:
    """When each step of the shutdown first happened, in the required order: what the journal has
    from `since` on. The end of one agent may be requested twice, of which the second changes
    nothing."""
    told = [event for event in box.journal() if event["seq"] >= since]
    types = {
        event["type"]: event for event in reversed(told) if not event["type"].startswith("slot.")
    }
    closed = next(
        e for e in told if e["type"] == "slot.write" and e["data"]["method"] == "close_bead"
    )
    return [
        types["boot.shutdown_started"]["data"]["time"],
        types["agent.terminate.requested"]["ts"],
        types["agent.exited"]["data"]["exit"]["at"],
        closed["ts"],
    ]


def test_rc_019_clean(box: Box) -> None:
    """TERM: announced, agent ended, its bead closed, then all slots; within stop_seconds; the next
    boot reports clean."""
    task = with_agent(box)
    boot, since = box.wait_ready()["boot_id"], len(box.journal())
    started = time.monotonic()
    box.stop()
    took = time.monotonic() - started
    assert took < box.plan.resources.stop_seconds
    names = [event["event"] for event in box.events()]
    assert names.index("ShutdownStarted") < names.index("ShutdownCompleted")
    completed = box.event("ShutdownCompleted")
    assert completed["drained_ms"] / 1000 < took
    box.boot_again()
    assert box.wait_ready()["boot_id"] != boot
    assert box.get("/v1/meta").json["boot"]["previous_shutdown"] == "clean"
    assert box.sentinel()["previous"]["boot_id"] == boot
    assert not any(event["event"] == "PreviousBootUnclean" for event in box.events()[-60:])
    verified(box)
    closed = box.call("GET", f"/v1/tasks/{task}").json
    assert (closed["state"], closed["exit"]["reason"], closed["exit"]["signal"]) == (
        "failed",
        "terminated",
        "SIGTERM",
    )
    order = [*moments_of_the_end(box, since), completed["time"]]
    assert order == sorted(order), order


def test_rc_019_unclean(box: Box) -> None:
    """SIGKILL to everything while an agent runs: `PreviousBootUnclean` names the boot, and the journal verifies."""
    with_agent(box)
    boot = box.wait_ready()["boot_id"]
    last = verified(box)["last_seq"]
    box.kill()
    box.wait_exit(10)
    box.boot_again()
    assert box.wait_ready()["boot_id"] != boot
    assert box.get("/v1/meta").json["boot"]["previous_shutdown"] == "unclean"
    told = box.event("PreviousBootUnclean")
    assert told["previous_boot_id"] == boot
    assert told["last_seq"] >= last
    assert verified(box)["last_seq"] > last
