"""The same verbs without any container engine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_box import CliBox

from agentbox.box.boot.steps.p1_roots import MIN_FREE_BYTES
from agentbox.box.supervision.missing_protections import PROCESS_ENGINE_LACKS
from agentbox.host.engines.process.box_processes import box_pids

UP = ("--engine", "process")


@pytest.fixture(scope="module")
def box(cli_box: CliBox) -> CliBox:
    cli_box.up(*UP)
    return cli_box


def root_of(box: CliBox) -> Path:
    return Path(box.status()["protections_absent"] and _record(box)["root"])


def _record(box: CliBox) -> dict[str, str]:
    found: dict[str, str] = json.loads((box.state / "record.json").read_text())
    return found


def test_it_says_what_it_lacks(box: CliBox) -> None:
    """`up` and `status` list every protection that is absent."""
    assert tuple(box.status()["protections_absent"]) == PROCESS_ENGINE_LACKS
    said = box.up(*UP).out
    for line in PROCESS_ENGINE_LACKS:
        assert f"not protected here: {line}" in said


def test_run_and_exit_codes(box: CliBox) -> None:
    """Output and exit codes are passed on; the box's user is never root."""
    assert box("run", "--", "sh", "-c", "id -u; exit 3").out.strip() != "0"
    assert box("run", "--", "sh", "-c", "exit 3").code == 3


@pytest.mark.sampled(3, family="verbs of the process engine")
def test_up_changes_what_runs(box: CliBox) -> None:
    """Nothing for nothing; a changed key boots again, without a `down` in between."""
    boot = box.status()["boot_id"]
    box.up(*UP)
    assert box.status()["boot_id"] == boot
    box.write('api.max_body = "2MiB"\n')
    box.up(*UP)
    assert box.status()["boot_id"] != boot
    assert box("restart").code == 0


@pytest.fixture
def project() -> Iterator[Path]:
    """A directory that every user can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="agentbox-e2e-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.sampled(3, family="verbs of the process engine")
def test_a_project_is_the_workspace(box: CliBox, project: Path) -> None:
    """And the box's own workspace returns when the project is no longer requested."""
    assert box("run", "--direct", "--", "sh", "-c", "echo own > own").code == 0
    box.up(*UP, "--project", str(project))
    assert box("run", "--direct", "--", "sh", "-c", "echo made > file").code == 0
    assert (project / "file").read_text() == "made\n"
    box.up(*UP)
    assert box("run", "--", "cat", "own").out == "own\n"


@pytest.mark.sampled(3, family="verbs of the process engine")
def test_a_killed_supervisor_leaves_nothing_that_stays(box: CliBox) -> None:
    """`status` reports that it ended; `down` ends what remained and reports unclean; `up` works."""
    root = root_of(box)
    os.kill(int(_record(box)["pid"]), signal.SIGKILL)
    assert box("status").code == 8
    assert box("down").out == "down (unclean)\n"
    assert box_pids(root) == []
    box.up(*UP)
    assert box("run", "--", "echo", "fine").out == "fine\n"


@pytest.mark.sampled(3, family="verbs of the process engine")
def test_a_full_disk_is_named_and_nothing_is_lost(other: CliBox) -> None:
    """No space below the state directory: `up` and `status` report which one and what to do; with a
    little space everything can be read, and `up` reports what is missing without waiting for it;
    with space everything works."""
    other.up(*UP)
    task = other("run", "--", "echo", "before")
    assert task.out == "before\n"
    folder = Path(_record(other)["root"]) / "var/lib/agentbox"
    before = other("--json", "task", "list").json
    other("down")
    with _small(folder):
        filler = folder / "filler"
        for amount in (8 << 20, 1 << 12, 1):
            _fill(filler, amount)
        refused = other("up", "--yes", *UP)
        assert refused.code == 1
        assert "cannot write /var/lib/agentbox: No space left on device" in refused.err
        assert (
            f"Free space on that file system, of {folder}; the data of the box is unchanged."
            in refused.err
        )
        said = other.status()
        assert (said["state"], "No space left on device" in said["why"]) == ("exited", True)
        assert said["fix"].startswith(f"Free space on that file system, of {folder}")
        os.truncate(filler, filler.stat().st_size - MIN_FREE_BYTES - (1 << 14))
        began = time.monotonic()
        unready = other("up", "--yes", *UP)
        assert (unready.code, time.monotonic() - began < 60) == (1, True)
        assert "still missing: disk full: /var/lib/agentbox" in unready.err
        assert other("--json", "task", "list").json == before
        assert other("events", "verify").code == 0
        assert other("run", "--", "echo", "no").out == ""
        other("down")
        filler.unlink()
        other.up(*UP)
        assert other("--json", "task", "list").json[: len(before)] == before
        assert other("events", "verify").code == 0
        other("down")


@contextmanager
def _small(folder: Path) -> Iterator[None]:
    """A small file system in the place of that directory, with its content."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as kept:
        subprocess.run(["cp", "-a", f"{folder}/.", kept], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], check=True)
        try:
            subprocess.run(["cp", "-a", f"{kept}/.", folder], check=True)
            yield
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def _fill(path: Path, amount: int) -> None:
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(amount))


@pytest.mark.sampled(3, family="verbs of the process engine")
def test_a_lost_record_is_found(box: CliBox) -> None:
    """A box whose record is missing is found, and adopted by `up`."""
    (box.state / "record.json").unlink()
    assert box.status()["engine"] == "process"
    box.up(*UP)
    assert len({os.getsid(pid) for pid in box_pids(root_of(box))} & {int(_record(box)["pid"])}) == 1


@pytest.mark.sampled(3, family="verbs of the process engine")
def test_a_taken_port_is_named(box: CliBox, other: CliBox) -> None:
    """Exit 7, naming the program."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", other.port))
        taken.listen()
        ran = other("up", *UP)
    assert ran.code == 7
    assert f"api.port = {other.port}: process {os.getpid()} " in ran.error()[0]
