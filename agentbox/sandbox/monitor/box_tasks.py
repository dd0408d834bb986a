"""Processes and threads of all agents together, so that no sum of them takes what the box keeps for its control plane.

Each reaper writes an upper bound of its own tree into memory that all share, and reads the sum. Only where that sum meets
the limit is every tree counted anew, so a fork far from it reads nothing of /proc.
"""

import mmap
import os
from typing import Final

from agentbox.policy.limits.reserve import TASKS_PER_AGENT
from agentbox.sandbox.launcher import tree

_SLOTS: Final = 2048  # agents at once; the manifest allows 1,000


class BoxTasks:
    """Made by the launcher before it forks a reaper. `slots` is how many of the first ones may be in use."""

    def __init__(self) -> None:
        cells = memoryview(mmap.mmap(-1, 4 * (2 * _SLOTS + 1))).cast("I")
        self._reapers, self._tasks, self._slot_count = (
            cells[:_SLOTS],
            cells[_SLOTS : 2 * _SLOTS],
            cells[2 * _SLOTS :],
        )
        self._previous: dict[int, int] = {}  # by slot, at the last look

    def claim(self, reaper: int) -> None:
        """A slot for that reaper; the launcher calls it."""
        slot = self._reapers.tolist().index(0)
        self._tasks[slot], self._reapers[slot] = TASKS_PER_AGENT, reaper
        self._slot_count[0] = max(self._slot_count[0], slot + 1)

    def free(self, reaper: int) -> None:
        """That reaper is gone, with all of its tree; the launcher calls it."""
        if (slot := self.find_slot(reaper)) is not None:
            self._tasks[slot] = self._reapers[slot] = 0
            self._previous.pop(slot, None)

    def reconcile(self, reaper: int, tasks: int) -> None:
        """What a look has counted, in place of a bound that did not move since the look before; the launcher calls it."""
        slot = self.find_slot(reaper)
        if slot is None:
            return
        if self._previous.get(slot) == self._tasks[slot]:
            self.set_count(slot, tasks)
        self._previous[slot] = self._tasks[slot]

    def find_slot(self, reaper: int) -> int | None:
        """None for one that has none."""
        reapers = self._reapers[: self._slot_count[0]].tolist()
        return reapers.index(reaper) if reaper in reapers else None

    def set_count(self, slot: int, tasks: int) -> None:
        """So many, its reaper among them. What every agent may have is held for it."""
        self._tasks[slot] = max(TASKS_PER_AGENT, tasks)

    @property
    def reapers(self) -> list[int]:
        """Of the agents that there are."""
        return [pid for pid in self._reapers[: self._slot_count[0]].tolist() if pid]

    @property
    def upper_bound(self) -> int:
        """At least as many as there are."""
        return sum(self._tasks[: self._slot_count[0]].tolist())


class BoxShare:
    """The part of one reaper, of `most` in all; 0 is no limit."""

    def __init__(self, box_tasks: BoxTasks, maximum: int) -> None:
        self._box_tasks, self._maximum = box_tasks, maximum
        self._slot: int | None = None

    def reserve(self, tasks: int) -> bool:
        """Books `tasks` for the tree and its reaper, one more than it has. False, and nothing is booked, where the sum of all
        is over the limit by the bounds: `counted` may know better."""
        if self._slot is None:
            self._slot = self._box_tasks.find_slot(os.getpid())
        if not self._maximum or self._slot is None:
            return True
        self._box_tasks.set_count(self._slot, tasks)
        if tasks <= TASKS_PER_AGENT or self._box_tasks.upper_bound <= self._maximum:
            return True
        self._box_tasks.set_count(self._slot, tasks - 1)
        return False

    def reserve_counted(self, tasks: int) -> bool:
        """As `takes`, by a count of every tree."""
        assert self._slot is not None, "`takes` said no before"
        rows_of = tree.descendants_by_root(tree.scan(), self._box_tasks.reapers)
        counts = {pid: 1 + sum(row.threads for row in rows) for pid, rows in rows_of.items()}
        counts[os.getpid()] = tasks
        if sum(max(TASKS_PER_AGENT, count) for count in counts.values()) > self._maximum:
            return False
        self._box_tasks.set_count(self._slot, tasks)
        return True
