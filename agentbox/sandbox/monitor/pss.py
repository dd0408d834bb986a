"""The proportional set size (PSS) of processes: resident memory in which shared pages are divided
among the processes that share them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentbox.sandbox.launcher import tree

_KIB: Final = 1024
_REFRESHED_PER_POLL: Final = (
    8  # trees that are measured again at each poll, oldest measurement first
)


def measure_tree(rows: Sequence[tree.Process]) -> int:
    """Bytes. A process whose maps are not readable counts with its resident size."""
    return sum(_measure_process(row) for row in rows)


def _measure_process(row: tree.Process) -> int:
    """proc(5), `smaps_rollup`."""
    try:
        path = f"/proc/{row.procfs_id}/smaps_rollup"
        with open(path, "rb") as stream:  # noqa: PTH123 - few imports
            for line in stream:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * _KIB
    except OSError:
        pass
    current = tree.read_process(row.pid)
    return 0 if current is None or current.state in "ZX" else row.rss * tree.PAGE_SIZE


class PssTotal:
    """The PSS of many trees, by pid of the reaper. A measured tree counts with that value plus the
    growth of its resident memory, so that a thousand idle trees are not read at every poll. Pages
    that it shared with an ended tree are found at its next measurement.
    """

    def __init__(self, measure: Callable[[Sequence[tree.Process]], int] = measure_tree) -> None:
        self._measure = measure
        self._cached: dict[
            int, tuple[int, int]
        ] = {}  # resident and proportional, bytes; oldest measurement first

    def above(self, cap: int, trees: Mapping[int, Sequence[tree.Process]]) -> dict[int, int] | None:
        """Bytes of each tree, if all together exceed the cap when freshly measured; else None."""
        resident = {
            reaper: sum(row.rss for row in rows) * tree.PAGE_SIZE for reaper, rows in trees.items()
        }
        if sum(resident.values()) <= cap:
            self._cached.clear()
            return None
        self._cached = {
            reaper: cached for reaper, cached in self._cached.items() if reaper in trees
        }
        pending = list(self._cached)  # oldest measurement first
        for reaper in pending[:_REFRESHED_PER_POLL]:
            self._refresh(reaper, trees[reaper], resident[reaper])
        refreshed = set(pending[:_REFRESHED_PER_POLL])
        used = {reaper: self._upper_bound(reaper, size) for reaper, size in resident.items()}
        total = sum(used.values())
        # The most uncertain first: never measured, or grown most since.
        for reaper in sorted(
            used.keys() - refreshed, key=lambda pid: self._uncertainty(pid, used[pid]), reverse=True
        ):
            if total <= cap:
                return None
            total -= used[reaper]
            used[reaper] = self._refresh(reaper, trees[reaper], resident[reaper])
            total += used[reaper]
        return used if total > cap else None

    def _refresh(self, reaper: int, rows: Sequence[tree.Process], resident: int) -> int:
        size = self._measure(rows)
        self._cached.pop(reaper, None)
        self._cached[reaper] = resident, size
        return size

    def _upper_bound(self, reaper: int, resident: int) -> int:
        cached_resident, size = self._cached.get(reaper, (0, 0))
        return size + max(0, resident - cached_resident)

    def _uncertainty(self, reaper: int, used: int) -> int:
        return used - self._cached.get(reaper, (0, 0))[1]
