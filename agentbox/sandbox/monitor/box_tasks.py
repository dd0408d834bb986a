"""Processes and threads of all agents together, so that no sum of them takes what the box keeps for its control plane.

Each reaper writes an upper bound of its own tree into memory that all share, and reads the sum. Only where that sum meets
the limit is every tree counted anew, so a fork far from it reads nothing of /proc.
"""

import mmap
import os
from typing import Final

from agentbox.policy.limits.reserve import TASKS_OF_ONE
from agentbox.sandbox.launcher import tree

_SLOTS: Final = 2048  # agents at once; the manifest allows 1,000


class BoxTasks:
    """Made by the launcher before it forks a reaper. `slots` is how many of the first ones may be in use."""

    def __init__(self) -> None:
        cells = memoryview(mmap.mmap(-1, 4 * (2 * _SLOTS + 1))).cast("I")
        self._reapers, self._tasks, self._used = cells[:_SLOTS], cells[_SLOTS : 2 * _SLOTS], cells[2 * _SLOTS :]
        self._last: dict[int, int] = {}  # by slot, at the last look

    def claim(self, reaper: int) -> None:
        """A slot for that reaper; the launcher calls it."""
        slot = self._reapers.tolist().index(0)
        self._tasks[slot], self._reapers[slot] = TASKS_OF_ONE, reaper
        self._used[0] = max(self._used[0], slot + 1)

    def free(self, reaper: int) -> None:
        """That reaper is gone, with all of its tree; the launcher calls it."""
        if (slot := self.slot_of(reaper)) is not None:
            self._tasks[slot] = self._reapers[slot] = 0
            self._last.pop(slot, None)

    def settle(self, reaper: int, tasks: int) -> None:
        """What a look has counted, in place of a bound that did not move since the look before; the launcher calls it."""
        slot = self.slot_of(reaper)
        if slot is None:
            return
        if self._last.get(slot) == self._tasks[slot]:
            self.write(slot, tasks)
        self._last[slot] = self._tasks[slot]

    def slot_of(self, reaper: int) -> int | None:
        """None for one that has none."""
        reapers = self._reapers[: self._used[0]].tolist()
        return reapers.index(reaper) if reaper in reapers else None

    def write(self, slot: int, tasks: int) -> None:
        """So many, its reaper among them. What every agent may have is held for it."""
        self._tasks[slot] = max(TASKS_OF_ONE, tasks)

    @property
    def reapers(self) -> list[int]:
        """Of the agents that there are."""
        return [pid for pid in self._reapers[: self._used[0]].tolist() if pid]

    @property
    def bound(self) -> int:
        """At least as many as there are."""
        return sum(self._tasks[: self._used[0]].tolist())


class BoxShare:
    """The part of one reaper, of `most` in all; 0 is no limit."""

    def __init__(self, box: BoxTasks, most: int) -> None:
        self._box, self._most = box, most
        self._slot: int | None = None

    def takes(self, tasks: int) -> bool:
        """Books `tasks` for the tree and its reaper, one more than it has. False, and nothing is booked, where the sum of all
        is over the limit by the bounds: `counted` may know better."""
        if self._slot is None:
            self._slot = self._box.slot_of(os.getpid())
        if not self._most or self._slot is None:
            return True
        self._box.write(self._slot, tasks)
        if tasks <= TASKS_OF_ONE or self._box.bound <= self._most:
            return True
        self._box.write(self._slot, tasks - 1)
        return False

    def counted(self, tasks: int) -> bool:
        """As `takes`, by a count of every tree."""
        assert self._slot is not None, "`takes` said no before"
        rows_of = tree.by_root(tree.scan(), self._box.reapers)
        found = {pid: 1 + sum(row.threads for row in rows) for pid, rows in rows_of.items()}
        found[os.getpid()] = tasks
        if sum(max(TASKS_OF_ONE, count) for count in found.values()) > self._most:
            return False
        self._box.write(self._slot, tasks)
        return True
