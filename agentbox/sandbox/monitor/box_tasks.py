"""Counts processes and threads of all agents, so that their sum leaves a reserve for the control
plane.

Each reaper writes an upper bound of its own tree to memory that all reapers share, and reads the
sum. Every tree is counted only when that sum reaches the limit, so a fork far from it reads nothing
of /proc.
"""

import mmap
import os
from typing import Final

from agentbox.policy.limits.reserve import TASKS_PER_AGENT
from agentbox.sandbox.launcher import tree

_SLOTS: Final = 2048  # concurrent agents; the manifest allows 1,000


class BoxTasks:
    """Created by the launcher before it forks a reaper. Only the first slots, up to a stored count,
    are in use.
    """

    def __init__(self) -> None:
        cells = memoryview(mmap.mmap(-1, 4 * (2 * _SLOTS + 1))).cast("I")
        self._reapers, self._tasks, self._slot_count = (
            cells[:_SLOTS],
            cells[_SLOTS : 2 * _SLOTS],
            cells[2 * _SLOTS :],
        )
        self._previous: dict[int, int] = {}  # by slot, at the last poll

    def claim(self, reaper: int) -> None:
        """Assigns a slot to that reaper; called by the launcher."""
        slot = self._reapers.tolist().index(0)
        self._tasks[slot], self._reapers[slot] = TASKS_PER_AGENT, reaper
        self._slot_count[0] = max(self._slot_count[0], slot + 1)

    def free(self, reaper: int) -> None:
        """Frees the slot of a reaper that has exited with its tree; called by the launcher."""
        if (slot := self.find_slot(reaper)) is not None:
            self._tasks[slot] = self._reapers[slot] = 0
            self._previous.pop(slot, None)

    def reconcile(self, reaper: int, tasks: int) -> None:
        """Replaces a bound that did not change since the previous poll by a count; called by the
        launcher.
        """
        slot = self.find_slot(reaper)
        if slot is None:
            return
        if self._previous.get(slot) == self._tasks[slot]:
            self.set_count(slot, tasks)
        self._previous[slot] = self._tasks[slot]

    def find_slot(self, reaper: int) -> int | None:
        """The slot of a reaper, None if it has none."""
        reapers = self._reapers[: self._slot_count[0]].tolist()
        return reapers.index(reaper) if reaper in reapers else None

    def set_count(self, slot: int, tasks: int) -> None:
        """Stores a count, the reaper included; at least what is reserved for each agent."""
        self._tasks[slot] = max(TASKS_PER_AGENT, tasks)

    @property
    def reapers(self) -> list[int]:
        """Of the current agents."""
        return [pid for pid in self._reapers[: self._slot_count[0]].tolist() if pid]

    @property
    def upper_bound(self) -> int:
        """At least the number of current tasks."""
        return sum(self._tasks[: self._slot_count[0]].tolist())


class BoxTaskReservation:
    """The share of one reaper in `maximum` tasks; 0 means no limit."""

    def __init__(self, box_tasks: BoxTasks, maximum: int) -> None:
        self._box_tasks, self._maximum = box_tasks, maximum
        self._slot: int | None = None

    def reserve(self, tasks: int) -> bool:
        """Reserves `tasks` for the tree and its reaper, one more than before. False, and nothing is
        reserved, if the sum of all upper bounds exceeds the limit; `reserve_counted` may still
        succeed.
        """
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
        """Like `reserve`, but counts every tree."""
        assert self._slot is not None, "`takes` said no before"
        rows_of = tree.descendants_by_root(tree.scan(), self._box_tasks.reapers)
        counts = {pid: 1 + sum(row.threads for row in rows) for pid, rows in rows_of.items()}
        counts[os.getpid()] = tasks
        if sum(max(TASKS_PER_AGENT, count) for count in counts.values()) > self._maximum:
            return False
        self._box_tasks.set_count(self._slot, tasks)
        return True
