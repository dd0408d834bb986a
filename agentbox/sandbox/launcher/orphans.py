"""Processes left behind by a killed agent-host: finds and ends them."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.linux import kernel
from agentbox.sandbox.launcher import tree

MARK = "AGENTBOX_AGENT_MARK"
_POLL_SECONDS = 0.02
_INITIAL_ENVIRONMENT = 1 << 20  # bytes read of a process's environment


@dataclass(frozen=True)
class RecordedProcess:
    """A process as stored; the pid alone may have been reused."""

    pid: int
    start_ticks: int
    boot_id: str

    @property
    def is_alive(self) -> bool:
        row = tree.read_process(self.pid)
        same = row is not None and row.start_ticks == self.start_ticks and row.state not in "ZX"
        return same and self.boot_id == kernel.boot_id()


def kill_orphans(
    mark: str,
    recorded: Iterable[RecordedProcess],
    find_strays: Callable[[], Iterable[int]],
    deadline: float,
) -> list[int]:
    """Kills repeatedly until no orphan is left: recorded processes, those whose initial environment
    contains `mark`, their descendants, and the pids of `find_strays`. `deadline` in seconds of
    `time.monotonic()`. Returns the pids that are still alive.
    """
    processes = tuple(recorded)
    while True:
        roots = (
            {process.pid for process in processes if process.is_alive}
            | set(_find_marked(mark))
            | set(find_strays())
        )
        table = tree.scan()
        rows = [
            row
            for row in _with_descendants(table, roots)
            if row.state not in "ZX" and row.pid != os.getpid()
        ]
        if not rows or time.monotonic() >= deadline:
            return [row.pid for row in rows]
        tree.signal_processes(rows, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def find_orphans_of_init(supervised: Iterable[int]) -> list[int]:
    """Children of PID 1 that are not supervised programs. A container's init adopts no others."""
    expected = {*supervised, os.getpid()}
    return [row.pid for row in tree.scan().values() if row.parent == 1 and row.pid not in expected]


def _with_descendants(table: tree.ProcessTable, roots: set[int]) -> list[tree.Process]:
    return [table[pid] for pid in roots if pid in table] + tree.descendants(table, roots)


def _find_marked(mark: str) -> list[int]:
    expected = f"{MARK}={mark}".encode()
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and _has_mark(entry, expected)
    ]


def _has_mark(entry: Path, expected: bytes) -> bool:
    try:
        with (entry / "environ").open("rb") as stream:
            return any(
                item.startswith(expected) for item in stream.read(_INITIAL_ENVIRONMENT).split(b"\0")
            )
    except OSError:  # exited, or owned by another user
        return False
