"""Each check finds planted problems, gives advice, and its fixes work."""

import fcntl
import json
import os
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support import tables
from support.forked_program import run_command
from support.plans import plan_of

from agentbox.box.posture.promised import promised_controls
from agentbox.core.linux import landlock as kernels
from agentbox.core.paths import Paths
from agentbox.host.doctor.catalogue import CHECKS, run_checks
from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.doctor.checks import (
    clocks,
    confinement,
    disk,
    landlock,
    limits,
    memory,
    ports,
    posture,
    stale_files,
    state_directory,
)
from agentbox.host.doctor.fixes import apply_fixes
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.state import BoxRecord
from agentbox.plan.model import Port, SecurityExceptionPlan
from agentbox.plan.render.controls import CONTROL_LINES


def by_name(rows: list[CheckResult]) -> Mapping[str, CheckResult]:
    """Results by subject, which must be unique."""
    assert rows
    assert len({row.name for row in rows}) == len(rows)
    return {row.subject: row for row in rows}


def test_every_check_speaks_and_what_is_bad_has_advice(host: CheckContext) -> None:
    """On this host: names are unique, titles exist, and bad results have advice."""
    card = run_checks(host)
    assert len({row.name for row in card.results}) == len(card.results)
    assert (
        {row.check for row in card.results} <= set(card.titles) == {check.name for check in CHECKS}
    )
    assert all(row.message for row in card.results)
    assert all(row.advice for row in card.results if row.state in ("bad", "warning"))
    assert {"kernel", "landlock", "seccomp", "confinement", "ports", "clocks", "state"} <= {
        row.check for row in card.results
    }


def test_a_check_that_cannot_look_stops_no_other(host: CheckContext) -> None:
    """A directory instead of a file: `unknown` there, and all other checks still run."""
    (host.state.directory.parent / "dockerd.json").mkdir()
    rows = run_checks(host).results
    assert {row.check for row in rows if row.state == "unknown"} == {stale_files.NAME}
    assert {check.name for check in CHECKS} - {"compose", "nix"} <= {row.check for row in rows}


def test_the_confinement_of_this_host_is_tried(host: CheckContext) -> None:
    """Starts a real process like an agent; its denied operations fail."""
    (row,) = confinement.run_check(host)
    assert row.state == "good"
    assert {"paths", "signals", "sockets", "network"} <= set(row.facts)
    assert all(row.facts.values())


@pytest.mark.parametrize(
    ("abi", "bad"), [(0, {"filesystem", "signals"}), (5, {"signals"}), (6, set()), (7, set())]
)
def test_an_old_landlock_is_named(
    host: CheckContext, monkeypatch: pytest.MonkeyPatch, abi: int, bad: set[str]
) -> None:
    """Each missing mechanism is reported; as a warning if the manifest permits it."""
    monkeypatch.setattr(kernels, "abi", lambda: abi)
    assert {row.subject for row in landlock.run_check(host) if row.state == "bad"} == bad
    allowing = replace(
        host, plan=replace(host.plan, limits=tables.limits(allow_degraded=tuple(bad)))
    )
    assert {row.subject for row in landlock.run_check(allowing) if row.state == "warning"} == bad


def test_a_port_that_is_taken_is_named_with_its_holder(host: CheckContext) -> None:
    """Bad while a listener exists, good afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        wanting = replace(
            host,
            plan=replace(
                host.plan,
                ports=(Port(owner="api.port", name="api", port=port, publish="127.0.0.1"),),
            ),
        )
        (row,) = ports.run_check(wanting)
        assert row.state == "bad"
        assert str(os.getpid()) in row.message
    (row,) = ports.run_check(wanting)
    assert row.state == "good"


def test_limits_that_the_host_does_not_have(host: CheckContext) -> None:
    """The result names the key."""
    asked = replace(host.plan.resources, cpus=100_000, pids=10**9)
    rows = by_name(list(limits.run_check(replace(host, plan=replace(host.plan, resources=asked)))))
    assert "resources.cpus" in rows["asked"].message
    assert {row.state for row in rows.values()} == {"bad"}
    assert {row.state for row in limits.run_check(host)} == {"good"}


def test_memory_that_the_host_does_not_have(host: CheckContext) -> None:
    """More than available, and enough."""
    rows = [
        replace(host.plan, resources=replace(host.plan.resources, memory=size))
        for size in (1 << 50, 0)
    ]
    assert [row.state for plan in rows for row in memory.run_check(replace(host, plan=plan))] == [
        "warning",
        "good",
    ]


def test_a_full_disk(host: CheckContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad below the minimum; paths that do not exist yet are reported too."""
    monkeypatch.setattr(disk, "RUN", 1 << 60)
    assert {row.state for row in disk.run_check(host)} == {"bad"}
    monkeypatch.undo()
    assert {row.subject for row in disk.run_check(host)} == {"state", "cache"}


def test_clocks_of_this_host(host: CheckContext) -> None:
    """Measures the monotonic clock and the file system's clock."""
    rows = by_name(list(clocks.run_check(host)))
    assert rows["monotonic"].state == "good"
    assert abs(rows["files"].facts["skew_seconds"]) < clocks.MAX_SKEW_SECONDS


def test_a_clock_that_goes_back_is_seen(
    host: CheckContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one nanosecond; and a wall clock before the first release."""
    readings = iter([5, 6, 5])
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(readings))
    monkeypatch.setattr(time, "time", lambda: 0.0)
    rows = by_name(list(clocks.run_check(host)))
    assert (rows["monotonic"].state, rows["wall"].state) == ("bad", "bad")
    assert rows["files"].state == "warning"  # a new file is far ahead of such a clock


def test_an_open_state_folder_is_mended(host: CheckContext) -> None:
    """Readable directory and token are bad; the fix makes them private, and the next run is good."""
    host.state.save_token("secret")
    host.state.directory.chmod(0o755)
    host.state.token_file.chmod(0o644)
    card = run_checks(host, [check for check in CHECKS if check.name == state_directory.NAME])
    assert {row.subject for row in card.failed} == {"folder", "token"}
    told: list[str] = []
    assert apply_fixes(card, lambda _question: False, told.append) == 0
    assert host.state.token_file.stat().st_mode & 0o777 == 0o644
    assert apply_fixes(card, lambda _question: True, told.append) == 2
    assert {row.state for row in state_directory.run_check(host)} == {"good"}


def test_what_a_killed_command_left_is_removed(host: CheckContext) -> None:
    """A partial file and the record of a dead daemon; a held lock is reported and stays."""
    half = host.state.directory / ".record.json.new"
    half.touch()
    note = host.paths.state_root / "dockerd.json"
    note.write_text(json.dumps({"pid": os.getpid(), "start_ticks": 1}))
    with (host.state.directory / "up.lock").open("w") as lock:
        lock.write("4711")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = by_name(list(stale_files.run_check(host)))
        assert rows["lock"].state == "note"
        assert "4711" in rows["lock"].message
    assert {name for name, row in rows.items() if row.state == "warning"} == {"files", "daemon"}
    assert (
        apply_fixes(
            run_checks(host),
            lambda question: str(host.paths.state_root) in question,
            lambda _said: None,
        )
        == 2
    )
    assert not half.exists()
    assert not note.exists()
    assert {row.state for row in stale_files.run_check(host)} == {"good"}


def test_a_box_that_ended_is_told(host: CheckContext, tmp_path: Path) -> None:
    """Its record names a process that has ended."""
    gone = BoxRecord(engine="process", name="test", api_url="http://127.0.0.1:1", root=str(tmp_path), pid=1, start_ticks=1)  # fmt: skip
    rows = by_name(list(stale_files.run_check(replace(host, record=gone))))
    assert rows["box"].state == "warning"


def test_every_line_of_hardening_has_a_row(
    host: CheckContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its CIS and PSS ids; drift is bad, exceptions are warnings."""
    plan = plan_of()
    widened = replace(
        plan, exceptions=(SecurityExceptionPlan(key="x", reason="y", cap_add=("SYS_PTRACE",)),)
    )
    record = BoxRecord(engine="docker", name="test", api_url="http://127.0.0.1:1")
    contained = replace(host, plan=widened, engine=DockerEngine(), record=record)
    monkeypatch.setattr(CheckContext, "running", True)
    drift = ["no_new_privs: 0 (expected 1)", "mount:/tmp: no mount (expected tmpfs)"]
    monkeypatch.setattr(posture, "query_json", lambda *_: (200, {"posture": {"drift": drift}}))
    rows = [row for row in posture.run_check(contained) if row.subject != "engine"]
    assert len(rows) == len(CONTROL_LINES)
    assert {control for row in rows for control in row.controls if control.startswith("CIS")} >= {
        "CIS 5.4",
        "CIS 5.26",
    }
    assert [row.message.partition(":")[0] for row in rows if row.state == "bad"] == [
        "security_opt",
        "volumes",
    ]
    (given_up,) = (row for row in rows if row.state == "warning")
    assert "CIS 5.4" in given_up.controls


def test_whatever_the_box_measures_has_a_line() -> None:
    """Every control that the box measures has a line."""
    names = {name.partition(":")[0] for name in promised_controls(plan_of(), Paths())} - {
        "landlock"
    }
    assert names <= set(posture.MEASURED)
    assert set(posture.MEASURED.values()) <= {line.name for line in CONTROL_LINES}


def agentbox(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the real command with temporary directories."""
    env = {
        **os.environ,
        "AGENTBOX_STATE_DIR": str(tmp_path / "state"),
        "AGENTBOX_CACHE_DIR": str(tmp_path / "cache"),
    }
    return run_command("doctor", "--engine", "process", *words, env=env)


def test_the_command_repairs_with_consent_only(tmp_path: Path) -> None:
    """Without terminal and --yes exit 3 without changes; with --yes the directory becomes private."""
    folder = tmp_path / "state/agentbox"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    asked = agentbox(tmp_path, "--fix")
    assert asked.returncode == 3, asked.stderr
    assert folder.stat().st_mode & 0o777 == 0o755
    found = json.loads(agentbox(tmp_path, "--format", "json").stdout)
    assert "state.folder" in found["failed"]
    mended = agentbox(tmp_path, "--fix", "--yes", "--format", "json")
    assert "state.folder" not in json.loads(mended.stdout)["failed"]
    assert folder.stat().st_mode & 0o777 == 0o700
