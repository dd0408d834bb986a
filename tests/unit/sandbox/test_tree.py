"""Processes as /proc shows them."""

import os
import subprocess
import sys

from agentbox.sandbox import tree
from agentbox.sandbox.tree import Process


def row(pid: int, parent: int, state: str = "S") -> Process:
    return Process(pid, parent, state, 0, 0)


def test_this_process_is_seen() -> None:
    """Parent and start time are the kernel's."""
    me = tree.look(os.getpid())
    assert me is not None
    assert me.parent == os.getppid()
    assert me.start_ticks > 0
    assert me.rss > 0


def test_a_name_may_hold_anything() -> None:
    """A process that calls itself `) S 1 (` is read like any other."""
    script = "import ctypes,sys; ctypes.CDLL(None).prctl(15, b') S 1 ('); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = tree.look(child.pid)
        assert found is not None
        assert found.parent == os.getpid()
        assert child.stdin is not None
        child.stdin.close()


def test_a_process_that_is_gone_is_none() -> None:
    """Neither its row nor a signal to it is an error."""
    with subprocess.Popen(["/bin/true"]) as child:
        child.wait()
    assert tree.look(child.pid) is None
    assert not tree.send_one(child.pid, 0)


def test_descendants_are_found_below_any_root() -> None:
    """The roots are left out, each process comes once."""
    table = {one.pid: one for one in (row(2, 1), row(3, 2), row(4, 3), row(5, 1), row(6, 5))}
    assert {one.pid for one in tree.descendants(table, [2])} == {3, 4}
    assert sorted(one.pid for one in tree.descendants(table, [2, 5])) == [3, 4, 6]
    assert tree.descendants(table, [99]) == []
