"""RC-001: with no network and empty volumes the box is ready within 10 s, and `/ready` has exactly its keys."""

import json
from collections.abc import Callable

from harness.container import DockerBox
from harness.process import ProcessBox
from harness.waiting import wait_for

READY_KEYS = {"ready", "since", "requirements", "degraded", "boot_id", "plan_digest", "checked_at", "evidence"}
INSIDE = ["curl", "-sS", "--max-time", "3", "http://127.0.0.1:19090/ready"]


def test_rc_001_docker(docker_box: Callable[..., DockerBox]) -> None:
    """A container that is plugged into no network reaches ready; asked from inside, since nothing else can ask it."""
    box = docker_box()
    box.render()
    box.start_without_network()
    assert box.inspect()["NetworkSettings"]["Networks"] == {}
    body = wait_for(lambda: _ready_inside(box), 10, f"ready without network; {box.log_lines()[-5:]}")
    assert set(body) == READY_KEYS
    assert box.run(["curl", "-sS", "--max-time", "2", "http://192.0.2.1/"]).code != 0


def _ready_inside(box: DockerBox) -> dict[str, object] | None:
    ran = box.run(INSIDE)
    body = json.loads(ran.out) if ran.code == 0 else {}
    return body if body.get("ready") else None


def test_rc_001_process(process_box: Callable[..., ProcessBox]) -> None:
    """Under the process engine the boot opens no connection beyond loopback and is ready within 10 s."""
    box = process_box()
    box.start()
    body = box.wait_ready(10)
    assert set(body) == READY_KEYS
