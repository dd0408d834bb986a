"""Artifact probes, run for real."""

import http.server
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.prefix_box import PYTHON, make_plan

from agentbox.box.probes.base import ProbeResult
from agentbox.box.probes.executable import executable_fault
from agentbox.box.probes.suite import FORCED, run_probes
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, Probe

# As PID 1 does before supervisord; the system call of the waiting thread is not what the signal interrupts.
SIGNALLED = """
import os, signal, sys, threading
from pathlib import Path
from agentbox.plan.model import Probe
from agentbox.box.probes.suite import run_probes
from agentbox.core.paths import Paths
from support.prefix_box import make_plan
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
folder = Path(sys.argv[1])
os.mkfifo(folder / "up")
slow = Probe(id="slow", feature="f", kind="exec", argv=("/bin/sh", "-c", f"echo >{folder}/up; exec sleep 20"), timeout_seconds=20)
def tell():
    (folder / "up").read_bytes()
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
threading.Thread(target=tell, daemon=True).start()
run_probes(make_plan(1, (), probes=(slow,)), Paths(folder), "boot")
"""


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path)
    made.share.mkdir(parents=True)
    made.venv.symlink_to(sys.prefix)
    return made


def probe(kind: Any, **fields: Any) -> Probe:
    return Probe(**{"id": "p", "feature": "f", "kind": kind, **fields})


def run(paths: Paths, *probes: Probe, stage: Any = "boot", **options: Any) -> list[ProbeResult]:
    return run_probes(plan(*probes), paths, stage, **options)


def plan(*probes: Probe) -> Plan:
    return make_plan(1, (), probes=probes)


def one(paths: Paths, wanted: Probe) -> ProbeResult:
    return run(paths, wanted)[0]


def test_a_program_of_this_machine_passes(paths: Paths) -> None:
    """A program of this machine passes."""
    result = one(paths, probe("path", type="exec", path=PYTHON))
    assert result.passed
    assert (result.id, result.feature, result.detail) == ("p", "f", "")


def test_an_empty_file_over_a_program_fails(paths: Paths) -> None:
    """An empty file over a program fails."""
    (paths.share / "tool").touch(mode=0o755)
    assert (
        "neither a program nor a script"
        in one(paths, probe("path", type="exec", path="/opt/agentbox/share/tool")).detail
    )


def test_a_program_of_another_machine_fails(tmp_path: Path) -> None:
    """A program of another machine fails."""
    head = bytearray(Path(os.path.realpath(sys.executable)).read_bytes()[:4096])
    struct.pack_into("<H", head, 18, 40)  # EM_ARM
    other = tmp_path / "other"
    other.write_bytes(head)
    other.chmod(0o755)
    assert "another machine" in executable_fault(other)


def test_a_program_whose_loader_is_missing_fails(tmp_path: Path) -> None:
    """A program whose loader is missing fails."""
    data = Path("/usr/bin/env").read_bytes()
    broken = tmp_path / "broken"
    start = (
        data.index(b"/lib64/ld-linux")
        if b"/lib64/ld-linux" in data
        else data.index(b"/lib/ld-linux")
    )
    broken.write_bytes(data[:start] + b"/nowhe" + data[start + 6 :])
    broken.chmod(0o755)
    assert "which is missing" in executable_fault(broken)


@pytest.mark.parametrize(
    ("line", "why"),
    [("#!/usr/bin/env sh", ""), ("#!/no/such/x", "/no/such/x"), ("#!", "no interpreter")],
)
def test_a_script_needs_its_interpreter(tmp_path: Path, line: str, why: str) -> None:
    """A script needs its interpreter."""
    script = tmp_path / "script"
    script.write_text(f"{line}\n")
    script.chmod(0o755)
    assert why in executable_fault(script)
    assert bool(executable_fault(script)) == bool(why)


def test_a_file_without_the_x_bit_is_not_executable(tmp_path: Path) -> None:
    """A file without the x bit is not executable."""
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    assert executable_fault(tmp_path / "plain") == "is not executable"


def test_globs_count(paths: Paths) -> None:
    """Globs count."""
    (paths.share / "a.txt").write_text("x")
    (paths.share / "b.txt").touch()
    wanted = {"path": "/opt/agentbox/share", "glob": "*.txt"}
    assert one(paths, probe("path", min_count=1, **wanted)).passed
    assert "1 found, 2 needed" in one(paths, probe("path", min_count=2, **wanted)).detail


def test_exec_compares_code_and_output(paths: Paths) -> None:
    """Exec compares code and output."""
    argv = ("/bin/sh", "-c", "echo version 2.1; exit 4")
    assert one(paths, probe("exec", argv=argv, exit_code=4, stdout_regex=r"^version 2\.")).passed
    assert "ended with 4, not 0" in one(paths, probe("exec", argv=argv)).detail
    assert "printed" in one(paths, probe("exec", argv=argv, exit_code=4, stdout_regex="^3")).detail
    assert "cannot be started" in one(paths, probe("exec", argv=("/no/such",))).detail


def test_exec_gives_a_closed_stdin_and_a_minimal_environment(paths: Paths) -> None:
    """Exec has a closed stdin and a minimal environment."""
    argv = ("/bin/sh", "-c", "cat; env | cut -d= -f1 | sort | tr '\\n' ' '")
    detail = one(
        paths, probe("exec", argv=argv, stdout_regex=r"^HOME LANG PATH (PWD )?TMPDIR (_ )?$")
    ).detail
    assert detail == ""


@pytest.mark.timed
def test_a_probe_out_of_time_is_killed_with_all_its_children(paths: Paths, tmp_path: Path) -> None:
    """A probe out of time is killed with all its children."""
    noted = tmp_path / "pid"
    argv = ("/bin/sh", "-c", f"sleep 300 & echo $! > {noted}; wait")
    begun = time.monotonic()
    result = one(paths, probe("exec", argv=argv, timeout_seconds=0.5))
    assert time.monotonic() - begun < 5
    assert "did not end within 0.5 s" in result.detail
    end = time.monotonic() + 5
    while _alive(int(noted.read_text())):
        assert time.monotonic() < end


def _alive(pid: int) -> bool:
    from agentbox.core.linux import procfs

    return procfs.is_alive(pid)


def test_imports_are_reported_one_by_one(paths: Paths) -> None:
    """Imports are reported one by one."""
    result = one(
        paths,
        probe(
            "python-import", modules=("json", "no_such_thing", "also.absent"), timeout_seconds=30
        ),
    )
    assert not result.passed
    assert "no_such_thing (ModuleNotFoundError" in result.detail
    assert "also.absent (ModuleNotFoundError" in result.detail
    assert "json" not in result.detail
    assert one(
        paths, probe("python-import", modules=("json", "starlette"), timeout_seconds=30)
    ).passed


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/ok" else 404)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def url() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_http_compares_status_and_body(paths: Paths, url: str) -> None:
    """Http compares status and body."""
    assert one(paths, probe("http", url=f"{url}/ok", body_regex="^hel")).passed
    assert "returns 404, not 200" in one(paths, probe("http", url=f"{url}/other")).detail
    assert (
        "an unexpected body" in one(paths, probe("http", url=f"{url}/ok", body_regex="bye")).detail
    )


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/x", "https://127.0.0.1/x", "http://localhost.example/x"]
)
def test_http_asks_loopback_only(paths: Paths, url: str) -> None:
    """Http connects to loopback only."""
    assert "not on loopback" in one(paths, probe("http", url=url)).detail


def test_the_stage_decides_and_the_order_is_the_plans(paths: Paths) -> None:
    """The stage decides and the order is the plan's."""
    probes = [
        probe("path", id="one", path="/usr"),
        probe("path", id="deep", path="/usr", stage="deep"),
        probe("exec", id="two", argv=("/bin/true",)),
    ]
    assert [result.id for result in run(paths, *probes)] == ["one", "two"]
    assert [result.id for result in run(paths, *probes, stage="deep")] == ["deep"]
    assert run(paths) == []


@pytest.mark.timed
def test_probes_run_in_parallel_within_one_deadline(paths: Paths) -> None:
    """Probes run in parallel within one deadline."""
    sleepers = [
        probe("exec", id=str(number), argv=("/bin/sleep", "60"), timeout_seconds=60)
        for number in range(4)
    ]
    begun = time.monotonic()
    results = run(paths, *sleepers, total_seconds=0.5)
    assert time.monotonic() - begun < 10
    assert [result.passed for result in results] == [False] * 4


def test_a_hook_forces_a_failure_also_under_an_id_that_nobody_has(paths: Paths) -> None:
    """A hook forces a failure also under an id without a probe."""
    good = probe("path", type="dir", path="/usr")
    assert run(paths, good, force_missing="p")[0].detail == FORCED
    assert [result.id for result in run(paths, good, force_missing="q") if not result.passed] == [
        "q"
    ]


def test_a_signal_that_interrupts_no_wait_is_heard_all_the_same(tmp_path: Path) -> None:
    """The kernel may deliver it to another thread, or just before the main one begins to wait."""
    argv = [sys.executable, "-c", SIGNALLED, str(tmp_path)]
    assert subprocess.run(argv, stdin=subprocess.DEVNULL, check=False, timeout=10).returncode == 143
