"""RC-001: with no network and empty volumes the box is ready within 10 s, and `/ready` has exactly its keys.

Columns D and H.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from harness.container import NETWORK, DockerBox, docker
from harness.outcomes import API_PORT, NAME
from harness.process import ProcessBox
from harness.waiting import wait_for
from support.offline import network_reachable, offline

SECONDS = 10
READY_KEYS = {
    "ready",
    "since",
    "requirements",
    "degraded",
    "boot_id",
    "plan_digest",
    "checked_at",
    "evidence",
}
INSIDE = ["curl", "-sS", "--max-time", "3", f"http://127.0.0.1:{API_PORT}/ready"]


@pytest.mark.timed
def test_rc_001_docker(docker_box: Callable[..., DockerBox]) -> None:
    """A container without any network becomes ready; queried from inside, since nothing else can
    reach it."""
    box = docker_box()
    box.create()
    docker("network", "disconnect", NETWORK, NAME)
    docker("start", NAME)
    assert box.inspect()["NetworkSettings"]["Networks"] == {}
    body = wait_for(
        lambda: _ready_inside(box),
        SECONDS,
        lambda: f"ready without network; {box.log_lines()[-5:]}",
    )
    assert set(body) == READY_KEYS
    assert box.sentinel()["previous"]["shutdown"] == "first"
    assert box.run(["curl", "-sS", "--max-time", "2", "http://198.51.100.1/"]).code != 0


def _ready_inside(box: DockerBox) -> dict[str, Any] | None:
    ran = box.run(INSIDE)
    body = json.loads(ran.out) if ran.code == 0 else {}
    return body if body.get("ready") else None


@pytest.mark.timed
def test_rc_001_process(process_box: Callable[..., ProcessBox]) -> None:
    """Under the process engine the same, in a network namespace that has only loopback."""
    box = process_box()

    def boot() -> dict[str, Any]:
        assert not network_reachable()
        box.start()
        return box.wait_ready(SECONDS)

    body = offline(boot)
    assert set(body) == READY_KEYS
    assert box.sentinel()["previous"]["shutdown"] == "first"
