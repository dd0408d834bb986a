"""Processes as /proc shows them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.tree import Process

# pthread_exit(3) by the first thread: to /proc the process is a zombie, and its other thread continues
LEADERLESS = """
import ctypes, sys, threading, time
def hold():
    with open(sys.argv[1], "w"):
        while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z": time.sleep(0.001)
        print("held", flush=True)
        sys.stdin.read()
threading.Thread(target=hold).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def row(pid: int, parent: int, state: str = "S") -> Process:
    return Process(pid, parent, state, 0, 0)


def test_this_process_is_seen() -> None:
    """Parent and start time are the kernel's."""
    me = tree.read_process(os.getpid())
    assert me is not None
    assert me.parent == os.getppid()
    assert me.start_ticks > 0
    assert me.rss > 0


def test_a_name_may_hold_anything() -> None:
    """A process that calls itself `) S 1 (` is read like any other."""
    script = "import ctypes,sys; ctypes.CDLL(None).prctl(15, b') S 1 ('); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = tree.read_process(child.pid)
        assert found is not None
        assert found.parent == os.getpid()
        assert child.stdin is not None
        child.stdin.close()


def test_a_process_that_is_gone_is_none() -> None:
    """Neither its row nor a signal to it is an error."""
    with subprocess.Popen(["/bin/true"]) as child:
        child.wait()
    assert tree.read_process(child.pid) is None
    assert not tree.signal_process(child.pid, 0)


def test_descendants_are_found_below_any_root() -> None:
    """The roots are left out, each process is listed once."""
    table = {one.pid: one for one in (row(2, 1), row(3, 2), row(4, 3), row(5, 1), row(6, 5))}
    assert {one.pid for one in tree.descendants(table, [2])} == {3, 4}
    assert sorted(one.pid for one in tree.descendants(table, [2, 5])) == [3, 4, 6]
    assert tree.descendants(table, [99]) == []


@contextmanager
def leaderless(held: Path) -> Iterator[int]:
    """The pid of a process whose first thread has exited, and that has a file open."""
    with subprocess.Popen(
        [sys.executable, "-c", LEADERLESS, str(held)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        yield child.pid
        child.kill()


def test_a_process_without_its_first_thread_is_no_zombie(tmp_path: Path) -> None:
    """It runs, with the memory and the descriptors of its other threads."""
    with leaderless(tmp_path / "held") as pid:
        poses = tree.read_thread(pid)
        assert poses is not None
        assert (poses.state, poses.rss) == ("Z", 0)
        row = tree.read_process(pid)
        assert row is not None
        assert (row.pid, row.parent, row.start_ticks) == (pid, os.getpid(), poses.start_ticks)
        assert row.state not in "ZX"
        assert row.rss > 0
        assert str(tmp_path / "held") in {
            str(one.readlink()) for one in Path(f"/proc/{row.procfs_id}/fd").iterdir()
        }


@pytest.mark.timed
def test_a_process_without_its_first_thread_is_ended(tmp_path: Path) -> None:
    """A signal that spares zombies reaches it, so the end of its tree does not wait for it without end."""
    script = f"""
import subprocess, sys
from agentbox.core.linux import kernel
from agentbox.sandbox.launcher import tree
kernel.become_subreaper()
child = subprocess.Popen([sys.executable, "-c", {LEADERLESS!r}, sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
tree.kill_children()
assert not tree.has_children()
"""
    held = str(tmp_path / "held")
    subprocess.run(
        [sys.executable, "-c", script, held], cwd=CHECKOUT, check=True, timeout=20, process_group=0
    )


FAMILY = """
import os, sys, threading
def sleeper():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(1, b"x")
        sys.stdin.buffer.read()
        os._exit(0)
sleeper()
thread = threading.Thread(target=lambda: (sleeper(), sys.stdin.buffer.read()))
thread.start()
thread.join()
"""


def test_a_family_is_found_without_a_look_at_all_processes() -> None:
    """Children of a process's other threads too, and their children in sessions of their own."""
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.read(2) == b"xx"
        found = tree.quick_descendants(child.pid)
        by_scan = tree.descendants(tree.scan(), [child.pid])
        assert len(found) == 4
        assert {row.pid for row in found} == {row.pid for row in by_scan}
        child.stdin.close()
    assert tree.quick_descendants(child.pid) == []
