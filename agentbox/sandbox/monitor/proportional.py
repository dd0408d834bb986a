"""The proportional size of processes: resident memory in which a page that several share is counted once, in parts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentbox.sandbox.launcher import tree

_KIB: Final = 1024
_AGAIN: Final = 8  # trees that each look at the sum reads anew, those read longest ago first


def of_tree(rows: Sequence[tree.Process]) -> int:
    """Bytes. A process that hides its maps counts with its resident size."""
    return sum(_of_process(row) for row in rows)


def _of_process(row: tree.Process) -> int:
    """proc(5), `smaps_rollup`."""
    try:
        with open(f"/proc/{row.shown}/smaps_rollup", "rb") as stream:  # noqa: PTH123 - the launcher keeps its imports few
            for line in stream:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * _KIB
    except OSError:
        pass
    now = tree.look(row.pid)
    return 0 if now is None or now.state in "ZX" else row.rss * tree.PAGE


class Sum:
    """Of many trees, by the pid of the reaper. A tree that was read once counts as what it had then and the resident memory
    by which it grew since, so that a thousand idle trees are not read at every look. What one shared with a tree that is
    gone is found when its turn to be read comes again."""

    def __init__(self, read: Callable[[Sequence[tree.Process]], int] = of_tree) -> None:
        self._read = read
        self._known: dict[int, tuple[int, int]] = {}  # resident and proportional, bytes; read longest ago first

    def above(self, cap: int, trees: Mapping[int, Sequence[tree.Process]]) -> dict[int, int] | None:
        """Bytes of each tree, where all together are above the cap when each has just been read."""
        resident = {reaper: sum(row.rss for row in rows) * tree.PAGE for reaper, rows in trees.items()}
        if sum(resident.values()) <= cap:
            self._known.clear()
            return None
        self._known = {reaper: known for reaper, known in self._known.items() if reaper in trees}
        left = list(self._known)  # in the order of their turns
        for reaper in left[:_AGAIN]:
            self._take(reaper, trees[reaper], resident[reaper])
        fresh = set(left[:_AGAIN])
        used = {reaper: self._at_most(reaper, size) for reaper, size in resident.items()}
        total = sum(used.values())
        # First those of which least is known: whoever was never read, and whoever grew most since.
        for reaper in sorted(used.keys() - fresh, key=lambda one: self._unknown(one, used[one]), reverse=True):
            if total <= cap:
                return None
            total -= used[reaper]
            used[reaper] = self._take(reaper, trees[reaper], resident[reaper])
            total += used[reaper]
        return used if total > cap else None

    def _take(self, reaper: int, rows: Sequence[tree.Process], resident: int) -> int:
        size = self._read(rows)
        self._known.pop(reaper, None)
        self._known[reaper] = resident, size
        return size

    def _at_most(self, reaper: int, resident: int) -> int:
        then, size = self._known.get(reaper, (0, 0))
        return size + max(0, resident - then)

    def _unknown(self, reaper: int, used: int) -> int:
        return used - self._known.get(reaper, (0, 0))[1]
