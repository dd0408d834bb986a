"""Orphans of a killed host."""

import os
import subprocess
import time

from agentbox.core.linux import kernel
from agentbox.sandbox.launcher import orphans, tree
from agentbox.sandbox.launcher.orphans import MARK, RecordedProcess


def ticks(pid: int) -> int:
    row = tree.read_process(pid)
    assert row is not None
    return row.start_ticks


def end(mark: str, *recorded: RecordedProcess) -> list[int]:
    return orphans.kill_orphans(mark, recorded, list, time.monotonic() + 5)


def test_a_recorded_process_is_ended_with_its_children() -> None:
    """Pid, start time and boot id fit: it and what descends from it are killed."""
    with subprocess.Popen(["sh", "-c", "sleep 1000 & echo; wait"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        below = [row.pid for row in tree.descendants(tree.scan(), [child.pid])]
        assert end("none", RecordedProcess(child.pid, ticks(child.pid), kernel.boot_id())) == []
        assert child.wait() == -9
    assert all((row := tree.read_process(pid)) is None or row.state == "Z" for pid in below)


def test_a_pid_that_is_anothers_by_now_is_left_alone() -> None:
    """Another start time, or another boot, is another process."""
    with subprocess.Popen(["sleep", "1000"]) as child:
        start = ticks(child.pid)
        assert (
            end(
                "none",
                RecordedProcess(child.pid, start + 1, kernel.boot_id()),
                RecordedProcess(child.pid, start, "x"),
            )
            == []
        )
        assert child.poll() is None
        child.kill()


def test_the_mark_finds_what_was_never_recorded() -> None:
    """A process that has the mark in its initial environment is ended; one of another box is not."""
    mine, other = (
        subprocess.Popen(["sleep", "1000"], env={MARK: f"{mark}:agent"})
        for mark in (f"m{os.getpid()}", "another")
    )
    try:
        assert end(f"m{os.getpid()}") == []
        assert mine.wait(5) == -9
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
        mine.wait()
