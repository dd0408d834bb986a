"""RC-012: every field of the sentinel agrees with the engine, `/proc` and the kernel; altered or replaced: 503.

Columns D and H.
"""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from harness.box import SENTINEL, Box
from harness.container import DockerBox, docker

from agentbox.box.posture import fingerprint
from agentbox.core.canonical import canonical_json
from agentbox.core.linux import landlock_writes

SECONDS = 7
FIELDS = {
    "schema", "agentbox.stage", "boot_id", "completed_at", "elapsed_seconds", "digests", "programs", "kernel", "posture",
    "phases", "previous",
}  # fmt: skip
FILES = {
    "manifest": "/etc/agentbox.toml",
    "baked_manifest": "/opt/agentbox/share/agentbox.toml",
    "lock": "/opt/agentbox/share/agentbox.lock",
    "probes": "/opt/agentbox/share/probes.json",
    "supervisord": "/etc/supervisord.conf",
}
PHASES = ["0", "0.5", "1", "2", "3", "4", "5", "B6", "B8"]
AGE = """
import sys, time
ticks = int(open(sys.argv[1]).read().rpartition(")")[2].split()[19])
print(time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / 100)
"""


def sha(text: str) -> str:
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def test_rc_012_form_and_boot(running: Box) -> None:
    """Exactly these fields, canonical JSON; the boot is the one that `/ready` names, the first on its volume."""
    raw, found = running.text(SENTINEL), running.sentinel()
    assert set(found) == FIELDS
    assert raw == canonical_json(found).decode()
    ready = running.wait_ready()
    assert (found["schema"], found["agentbox.stage"], found["boot_id"]) == (
        1,
        "bootstrap",
        ready["boot_id"],
    )
    assert ready["evidence"]["sentinel_sha256"] == sha(raw)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found["completed_at"])
    began, completed = (
        running.event(name)["time"] for name in ("BootstrapStarted", "BootstrapCompleted")
    )
    assert began < found["completed_at"] <= completed
    assert found["previous"] == {"boot_id": None, "sentinel_sha256": None, "shutdown": "first"}
    assert running.text(f"/var/lib/agentbox/boot/{found['boot_id']}.json") == raw


def test_rc_012_digests(running: Box) -> None:
    """Each digest is that of the file in the box; plan and closure are those that engine and image name."""
    digests = running.sentinel()["digests"]
    assert {name: digests[name] for name in FILES} == {
        name: sha(running.text(path)) for name, path in FILES.items()
    }
    assert digests["seccomp"] == running.plan.digests.seccomp
    assert digests["plan"] == running.plan.digest == running.wait_ready()["plan_digest"]
    others = {name: digests[name] for name in set(digests) - set(FILES) - {"seccomp", "plan"}}
    if isinstance(running, DockerBox):
        container, image = (
            running.inspect(),
            json.loads(docker("image", "inspect", running.image.image_id))[0],
        )
        labels = container["Config"]["Labels"]
        assert {
            n: labels[f"org.agentbox.{n}-digest"] for n in ("plan", "manifest", "lock")
        }.items() <= digests.items()
        closure = image["Config"]["Labels"]["org.agentbox.closure-digest"]
        assert others == {
            "closure": closure,
            "image": container["Image"],
        }  # the reference was the image's id
        option = next(o for o in container["HostConfig"]["SecurityOpt"] if o.startswith("seccomp="))
        given = json.loads((running.compose_folder / "seccomp/agentbox.json").read_text())
        assert json.loads(option.removeprefix("seccomp=")) == given
        assert (
            sha((running.compose_folder / "seccomp/agentbox.json").read_text())
            == digests["seccomp"]
        )
    else:
        assert others == {"closure": None, "image": None}


def test_rc_012_programs(running: Box) -> None:
    """Every program of the plan, with the pid and the start time that supervisord and `/proc` have."""
    rows = {row["name"]: row for row in running.sentinel()["programs"]}
    assert {name: row["required"] for name, row in rows.items()} == {
        p.name: p.required for p in running.plan.programs
    }
    pids = json.loads(
        running.supervisor(
            "__import__('json').dumps({n: s.pid for n, s in client.states().items()})"
        )
    )
    stay = [program.name for program in running.plan.programs if not program.once]
    assert len(stay) >= 2
    for name in stay:
        stat = running.text(f"/proc/{rows[name]['pid']}/stat").rpartition(")")[2].split()
        assert (rows[name]["pid"], rows[name]["start_ticks"]) == (pids[name], int(stat[19])), name
    for program in running.plan.required_programs:
        assert 0 < rows[program.name]["ready_seconds"] <= running.sentinel()["elapsed_seconds"], (
            program.name
        )


def test_rc_012_kernel_and_posture(running: Box) -> None:
    """Kernel release and Landlock version; user, capabilities, no-new-privs, seccomp and root as PID 1 has them."""
    found = running.sentinel()
    assert found["kernel"] == {
        "release": running.run(["uname", "-r"]).out.strip(),
        "landlock_abi": landlock_writes.abi(),
    }
    status = dict(
        line.split(":\t", 1)
        for line in running.text(f"/proc/{running.first_pid()}/status").splitlines()
    )
    contained = isinstance(running, DockerBox)
    assert found["posture"] == {
        "uid": int(status["Uid"].split()[0]),
        "caps": status["CapEff"],
        "no_new_privs": status["NoNewPrivs"] == "1",
        "seccomp_mode": int(status["Seccomp"]),
        "seccomp_fingerprint": fingerprint.expected() if contained else fingerprint.measure(),
        "root_read_only": running.run(["test", "-w", "/"]).code != 0 and _read_only(running),
        "drift": [],
    }
    values = [
        found["posture"][name] for name in ("uid", "no_new_privs", "seccomp_mode", "root_read_only")
    ]
    assert values == ([1000, True, 2, True] if contained else [1000, True, 0, False])


def _read_only(box: Box) -> bool:
    """By the mount table."""
    rows = (line.split() for line in box.text("/proc/self/mounts").splitlines())
    return "ro" in next(row[3].split(",") for row in rows if row[1] == "/")


def test_rc_012_phases(running: Box) -> None:
    """Each phase in order, as `phases.jsonl` timed it; together they fit into the time that the boot took."""
    found = running.sentinel()
    told: list[dict[str, Any]] = [
        json.loads(line) for line in running.text("/run/agentbox/phases.jsonl").splitlines()
    ]
    assert [row["id"] for row in found["phases"]] == PHASES
    assert found["phases"] == [
        {name: row[name] for name in ("id", "ms", "budget_ms")} for row in told
    ]
    assert sum(row["ms"] for row in found["phases"]) / 1000 < found["elapsed_seconds"]
    age = float(running.python(AGE, f"/proc/{running.first_pid()}/stat").out)
    assert 0 < found["elapsed_seconds"] < age


OPEN = "import pathlib, sys; path = pathlib.Path(sys.argv[1]); kept = path.with_name('kept'); "
KEEP, BACK = (
    "kept.write_bytes(path.read_bytes()); ",
    "path.unlink(missing_ok=True); kept.rename(path)",
)
CHANGES = (
    "path.chmod(0o600); path.write_bytes(path.read_bytes() + b' ')",
    "path.unlink(); path.write_text(kept.read_text().replace('boot_id', 'boot_is'))",
    "path.unlink()",
)


def test_rc_012_changed(make_box: Callable[..., Box]) -> None:
    """One more byte, another one in its place, none at all: 503 naming the sentinel; the right one
    restored: ready."""
    box = make_box()
    box.start()
    box.wait_ready()
    for change in CHANGES:
        assert box.python(OPEN + KEEP + change, SENTINEL).code == 0
        assert box.wait_missing("bootstrap.done sentinel", SECONDS)["missing"] == [
            "bootstrap.done sentinel"
        ]
        assert box.python(OPEN + BACK, SENTINEL).code == 0
        box.wait_ready()
