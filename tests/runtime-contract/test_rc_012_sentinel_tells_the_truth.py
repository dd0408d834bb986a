"""RC-012: every field of the sentinel agrees with the engine and the kernel; a changed one un-readies the box."""

import json
from collections.abc import Callable

from harness.container import DockerBox

SENTINEL = "/run/agentbox/bootstrap.done"


def test_rc_012_fields(docker_box: Callable[..., DockerBox]) -> None:
    """Digests, programs with pid and start time, kernel, posture."""
    box = docker_box()
    box.start()
    ready = box.wait_ready()
    sentinel = json.loads(box.run(["cat", SENTINEL]).out)
    labels = box.inspect()["Config"]["Labels"]
    assert sentinel["boot_id"] == ready["boot_id"]
    assert sentinel["digests"]["plan"] == labels["org.agentbox.plan-digest"] == box.plan.digest
    assert sentinel["digests"]["manifest"] == labels["org.agentbox.manifest-digest"]
    assert sentinel["digests"]["lock"] == labels["org.agentbox.lock-digest"]
    assert sentinel["digests"]["seccomp"] == box.plan.digests.seccomp
    assert {row["name"] for row in sentinel["programs"] if row["required"]} == {p.name for p in box.plan.required_programs}
    for row in sentinel["programs"]:
        if row["name"] in {"management-api", "agent-host"}:
            stat = box.run(["cat", f"/proc/{row['pid']}/stat"]).out.rpartition(")")[2].split()
            assert int(stat[19]) == row["start_ticks"], row["name"]
    assert sentinel["kernel"]["release"] == box.run(["uname", "-r"]).out.strip()
    assert sentinel["posture"]["uid"] == 1000
    assert sentinel["posture"]["no_new_privs"] in (1, True)
    assert sentinel["posture"]["seccomp_mode"] == 2
    assert sentinel["posture"]["root_read_only"] is True
    assert sentinel["previous"]["shutdown"] == "first"


def test_rc_012_changed_sentinel(docker_box: Callable[..., DockerBox]) -> None:
    """One byte changed, or the file removed: 503 naming the sentinel within 7 s."""
    box = docker_box()
    box.start()
    box.wait_ready()
    changed = box.run(["bash", "-c", f"chmod u+w {SENTINEL}; printf ' ' >> {SENTINEL}"])
    assert changed.code == 0, changed.err
    box.wait_missing("bootstrap.done sentinel", 7)


def test_rc_012_removed_sentinel(docker_box: Callable[..., DockerBox]) -> None:
    """Without the file the box is not ready."""
    box = docker_box()
    box.start()
    box.wait_ready()
    assert box.run(["rm", "-f", SENTINEL]).code == 0
    box.wait_missing("bootstrap.done sentinel", 7)
