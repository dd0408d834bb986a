"""RC-016: what a process in the box sees of itself is the baseline.

Column D.
"""

import json

from harness.container import DockerBox

from agentbox.box.posture import fingerprint
from agentbox.core.linux import landlock_writes

SETUID = ["find", "/", "-xdev", "-type", "f", "(", "-perm", "-4000", "-o", "-perm", "-2000", ")"]
MEASURE = "from agentbox.box.posture import fingerprint; print(fingerprint.measure())"
PLANTED = "printf 'output = /workspace/obeyed\\n' >/workspace/.curlrc"
HOMES = """
import json, pathlib
found = {}
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        entries = (folder / "environ").read_bytes().split(b"\\0")
    except OSError:
        continue
    found[(folder / "comm").read_text().strip() + folder.name] = [e.decode() for e in entries if e.startswith(b"HOME=")]
print(json.dumps(found))
"""
NO_EXEC = "cp /usr/bin/true /tmp/rc-016 && /tmp/rc-016"


def inside_is_baseline(box: DockerBox) -> None:
    """The predicate, of a box that is ready."""
    status = dict(
        line.split(":\t", 1) for line in box.text("/proc/1/status").splitlines() if ":\t" in line
    )
    _identity(status)
    assert status["NoNewPrivs"] == "1", "no-new-privs"
    assert status["Seccomp"] == "2", "seccomp mode"
    measured = box.python(MEASURE)
    assert measured.out.strip() == fingerprint.expected(), "seccomp fingerprint"
    _mounts(box)
    _rlimits(box)
    sentinel = box.sentinel()
    assert sentinel["kernel"]["landlock_abi"] == landlock_writes.abi() >= 1
    assert sentinel["posture"]["drift"] == [], "drift"


def _identity(status: dict[str, str]) -> None:
    assert status["Uid"].split() == ["1000"] * 4
    assert status["Gid"].split() == ["1000"] * 4
    assert set(status["Groups"].split()) <= {"1000"}
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name


def _mounts(box: DockerBox) -> None:
    mounts = {
        line.split()[1]: set(line.split()[3].split(","))
        for line in box.text("/proc/mounts").splitlines()
    }
    assert "ro" in mounts["/"], "root"
    for target in ("/run", "/tmp", "/var/log", "/var/log/supervisor", "/var/run"):
        assert {"rw", "noexec", "nosuid", "nodev"} <= mounts.get(target, set()), target
    ran = box.run(["bash", "-c", NO_EXEC])
    assert "Permission denied" in ran.err, "/tmp runs programs"


def _rlimits(box: DockerBox) -> None:
    limits = box.text("/proc/1/limits").splitlines()
    nofile = next(line for line in limits if line.startswith("Max open files")).split()
    core = next(line for line in limits if line.startswith("Max core file size")).split()
    assert nofile[3:5] == [str(box.plan.resources.nofile)] * 2, "nofile"
    assert core[4:6] == ["0", "0"], "core"


def test_rc_016(running_docker: DockerBox) -> None:
    """Identity, capabilities, no-new-privs, seccomp mode and fingerprint, rlimits, mounts, Landlock version."""
    inside_is_baseline(running_docker)
    posture = running_docker.event("PostureChecked")
    assert posture["found"] == posture["expected"], json.dumps(posture)


def test_rc_016_no_setuid_file(running_docker: DockerBox) -> None:
    """There is none in the image; the search finds one in the workspace, where one was created."""
    box = running_docker
    made = "cp /usr/bin/true /workspace/s && chmod 6755 /workspace/s && find /workspace -type f -perm -4000; rm /workspace/s"
    assert box.run(["bash", "-c", made]).out.strip() == "/workspace/s"
    assert len(box.run(["find", "/", "-xdev", "-type", "f"]).out.splitlines()) > 1000
    assert box.run(SETUID).out == ""


def test_rc_016_nobody_obeys_files_of_the_workspace(running_docker: DockerBox) -> None:
    """The health check's curl reads `.curlrc` of HOME, the operator's shell `.bashrc`: agents may write the workspace."""
    box = running_docker
    planted = box.run(["bash", "-c", PLANTED])
    assert planted.code == 0, planted.err
    asked = box.run(["/usr/bin/curl", "-sS", f"http://127.0.0.1:{box.plan.api.port}/livez"])
    assert "uptime" in json.loads(asked.out)
    assert box.run(["ls", "/workspace/obeyed"]).code != 0
    box.run(["rm", "/workspace/.curlrc"])
    homes = json.loads(box.python(HOMES).out)
    assert len(homes) >= 5
    assert "HOME=/var/lib/agentbox/home" in {home for found in homes.values() for home in found}
    assert [name for name, found in homes.items() if "HOME=/workspace" in found] == []
