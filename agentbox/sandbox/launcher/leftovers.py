"""Processes that an agent-host which was killed left behind: found by what they were given, and ended."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.linux import kernel
from agentbox.sandbox.launcher import tree

MARK = "AGENTBOX_AGENT_MARK"
_LOOK_SECONDS = 0.02
_INITIAL_ENVIRONMENT = 1 << 20  # bytes read of it


@dataclass(frozen=True)
class Recorded:
    """A process as it was written down: a pid alone may be another's by now."""

    pid: int
    start_ticks: int
    boot_id: str

    @property
    def lives(self) -> bool:
        row = tree.look(self.pid)
        same = row is not None and row.start_ticks == self.start_ticks and row.state not in "ZX"
        return same and self.boot_id == kernel.boot_id()


def end_leftovers(
    mark: str, recorded: Iterable[Recorded], strays: Callable[[], Iterable[int]], deadline: float
) -> list[int]:
    """Kills, and looks again, until none is left: recorded ones, those whose initial environment carries `mark`, what
    descends from them, and what `strays` names. `deadline` in seconds of `time.monotonic()`. Returns who still lives.
    """
    known = tuple(recorded)
    while True:
        roots = {one.pid for one in known if one.lives} | set(_marked(mark)) | set(strays())
        table = tree.scan()
        rows = [row for row in _with_descendants(table, roots) if row.state not in "ZX" and row.pid != os.getpid()]
        if not rows or time.monotonic() >= deadline:
            return [row.pid for row in rows]
        tree.send(rows, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


def orphans_of_init(supervised: Iterable[int]) -> list[int]:
    """Children of PID 1 that are no supervised program. In a container nothing else is adopted there."""
    mine = {*supervised, os.getpid()}
    return [row.pid for row in tree.scan().values() if row.parent == 1 and row.pid not in mine]


def _with_descendants(table: tree.Table, roots: set[int]) -> list[tree.Process]:
    return [table[pid] for pid in roots if pid in table] + tree.descendants(table, roots)


def _marked(mark: str) -> list[int]:
    wanted = f"{MARK}={mark}".encode()
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal() and _carries(entry, wanted)]


def _carries(entry: Path, wanted: bytes) -> bool:
    try:
        with (entry / "environ").open("rb") as stream:
            return any(item.startswith(wanted) for item in stream.read(_INITIAL_ENVIRONMENT).split(b"\0"))
    except OSError:  # gone, or of another user
        return False
