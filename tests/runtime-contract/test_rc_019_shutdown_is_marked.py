"""RC-019: an orderly stop drains and is marked clean; a killed box is marked unclean at its next boot."""

import time
from collections.abc import Callable

from harness.container import DockerBox


def test_rc_019_clean(docker_box: Callable[..., DockerBox]) -> None:
    """TERM: ShutdownStarted, then ShutdownCompleted, within stop_seconds; the next boot says `clean`."""
    box = docker_box()
    box.start()
    box.wait_ready()
    started = time.monotonic()
    box.stop()
    assert time.monotonic() - started < box.plan.resources.stop_seconds
    names = [event["event"] for event in box.events()]
    assert names.index("ShutdownStarted") < names.index("ShutdownCompleted")
    box.start_again()
    box.wait_ready()
    assert box.get("/v1/meta").json["boot"]["previous_shutdown"] == "clean"


def test_rc_019_unclean(docker_box: Callable[..., DockerBox]) -> None:
    """SIGKILL: PreviousBootUnclean at the next boot, and the journal still verifies."""
    box = docker_box()
    box.start()
    box.wait_ready()
    box.kill()
    box.wait_exit(10)
    box.start_again()
    box.wait_ready()
    assert box.get("/v1/meta").json["boot"]["previous_shutdown"] == "unclean"
    assert box.event("PreviousBootUnclean")["previous_boot_id"]
    report = box.get("/v1/events/verify", method="POST", token=box.token(), headers={"Content-Type": "application/json"}, body=b"{}")
    assert report.status == 200, report.body
    assert report.json["ok"] is True
    assert report.json["last_seq"] >= 1
