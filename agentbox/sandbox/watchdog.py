"""Looks at the trees of all agents and names those beyond their memory or their number of processes."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentbox.sandbox import tree
from agentbox.sandbox.spec import Breach

NEAR_SECONDS = 0.1  # between two looks while some tree uses more than half of a limit
FAR_SECONDS = 0.25
_PAGE = os.sysconf("SC_PAGE_SIZE")
_KIB = 1024


@dataclass(frozen=True)
class Bounds:
    """Of one tree, which the host knows by its number; 0 = none."""

    number: int
    memory: int
    pids: int


class Watchdog:
    """Remembers nothing but how long it may sleep."""

    def __init__(self) -> None:
        self.pause = FAR_SECONDS

    def look(self, trees: Mapping[int, Bounds]) -> Iterator[tuple[int, Breach]]:
        """Yields (reaper pid, breach) for each tree that crossed a limit. Sets `pause`."""
        table = tree.scan()
        nearest = 0.0
        for reaper, bounds in trees.items():
            rows = [row for row in tree.descendants(table, [reaper]) if row.state not in "ZX"]
            resident = sum(row.rss for row in rows) * _PAGE
            nearest = max(nearest, _share(resident, bounds.memory), _share(len(rows), bounds.pids))
            if bounds.pids and len(rows) > bounds.pids:
                yield reaper, Breach(limit="pids", observed=len(rows), cap=bounds.pids)
            elif bounds.memory and resident > bounds.memory and (used := _proportional(rows)) > bounds.memory:
                yield reaper, Breach(limit="memory", observed=used, cap=bounds.memory)
        self.pause = NEAR_SECONDS if nearest > 0.5 else FAR_SECONDS


def _share(observed: int, cap: int) -> float:
    return observed / cap if cap else 0.0


def _proportional(rows: list[tree.Process]) -> int:
    """Bytes, pages that processes share counted once. A process that hides its maps counts with its resident size."""
    return sum(_pss(row) for row in rows)


def _pss(row: tree.Process) -> int:
    try:
        with open(f"/proc/{row.pid}/smaps_rollup", "rb") as stream:  # noqa: PTH123 - the launcher keeps its imports few
            for line in stream:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * _KIB
    except ProcessLookupError:
        return 0
    except OSError:
        return row.rss * _PAGE
    return row.rss * _PAGE
