"""When the memory of many trees is read page by page, and that the sum is exact where it matters.
Real processes use it."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import pss
from agentbox.sandbox.monitor.pss import PssTotal

MIB = 1 << 20
TWICE = """
import os, sys
held = b"x" * (64 << 20)
child = os.fork()
if child:
    print(child, flush=True)
sys.stdin.readline()
"""
GROWS = """
import sys
held = []
print(0, flush=True)
for line in sys.stdin:
    held.append(b"x" * (int(line) << 20))
    print(0, flush=True)
"""


@contextmanager
def running(script: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process, and the number that it put out first."""
    command = [sys.executable, "-I", "-c", script]
    with subprocess.Popen(command, stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


def rows(*pids: int) -> list[tree.Process]:
    return [row for pid in pids if (row := tree.read_process(pid)) is not None]


class Counted:
    """Reads, and records which."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.sum = PssTotal(self._of)

    def _of(self, found: Sequence[tree.Process]) -> int:
        self.read.append(found[0].pid)
        return pss.measure_tree(found)


def test_pages_that_two_share_count_once() -> None:
    """The resident sum is beyond the cap, and the real use is not; beyond a smaller one both are
    named."""
    with running(TWICE) as (process, child):
        both = {1: rows(process.pid, child)}
        assert sum(row.rss for row in both[1]) * tree.PAGE_SIZE > 128 * MIB
        assert PssTotal().above(100 * MIB, both) is None
        found = PssTotal().above(60 * MIB, both)
    assert found is not None
    assert 64 * MIB < found[1] < 100 * MIB


def test_idle_trees_are_not_read_at_every_look() -> None:
    """Each at most once until there is capacity, then a few in turn; one that grew beyond it is
    read, and named."""
    with running(GROWS) as (still, _), running(GROWS) as (process, _):
        trees = {number: rows(still.pid) for number in range(40)} | {40: rows(process.pid)}
        cap = sum(row.rss for found in trees.values() for row in found) * tree.PAGE_SIZE - 1
        counted = Counted()
        assert counted.sum.above(cap, trees) is None
        assert 0 < len(counted.read) <= 41
        for _ in range(10):
            before = len(counted.read)
            assert counted.sum.above(cap, trees) is None
            assert len(counted.read) - before <= 9
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"%d\n" % (cap >> 20))
        process.stdin.flush()
        process.stdout.readline()
        found = counted.sum.above(cap, {**trees, 40: rows(process.pid)})
    assert found is not None
    assert max(found, key=lambda reaper: found[reaper]) == 40
