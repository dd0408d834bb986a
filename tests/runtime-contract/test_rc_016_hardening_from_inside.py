"""RC-016: what a process in the box sees of itself is the baseline."""

import json
from collections.abc import Callable

from harness.container import DockerBox

STATUS = ["cat", "/proc/1/status"]
SETUID = ["find", "/", "-xdev", "(", "-perm", "-4000", "-o", "-perm", "-2000", ")", "-type", "f"]


def test_rc_016(docker_box: Callable[..., DockerBox]) -> None:
    """Identity, capabilities, no-new-privs, seccomp mode, rlimits, mounts, Landlock ABI, and no setuid file."""
    box = docker_box()
    box.start()
    box.wait_ready()
    status = dict(line.split(":\t", 1) for line in box.run(STATUS).out.splitlines() if ":\t" in line)
    assert status["Uid"].split() == ["1000"] * 4
    assert status["Gid"].split() == ["1000"] * 4
    assert status["Groups"].split() in ([], ["1000"])
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    mounts = {line.split()[1]: line.split()[3].split(",") for line in box.run(["cat", "/proc/mounts"]).out.splitlines()}
    assert "ro" in mounts["/"]
    for target in ("/run", "/tmp", "/var/log", "/var/run"):
        assert {"noexec", "nosuid", "nodev"} <= set(mounts[target]), target
    limits = box.run(["cat", "/proc/1/limits"]).out
    nofile = next(line for line in limits.splitlines() if line.startswith("Max open files"))
    assert nofile.split()[3:5] == [str(box.plan.resources.nofile)] * 2
    core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
    assert core.split()[4:6] == ["0", "0"]
    found = box.run(SETUID)
    assert found.out == ""
    posture = box.event("PostureChecked")
    assert posture["found"] == posture["expected"] or not posture.get("drift"), json.dumps(posture)
    sentinel = json.loads(box.run(["cat", "/run/agentbox/bootstrap.done"]).out)
    assert sentinel["kernel"]["landlock_abi"] >= 1
    assert sentinel["posture"]["drift"] == []


def test_rc_016_positive_control(docker_box: Callable[..., DockerBox]) -> None:
    """The search for setuid files finds one where there is one, so that an empty answer means something."""
    box = docker_box()
    box.start()
    box.wait_ready()
    made = box.run(
        [
            "bash",
            "-c",
            "cp /usr/bin/true /workspace/s && chmod 4755 /workspace/s && find /workspace -perm -4000 -type f",
        ]
    )
    assert made.out.strip() == "/workspace/s"
