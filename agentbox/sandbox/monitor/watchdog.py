"""Polls the trees of all agents: reports those that exceed their memory or number of processes or
have unreadable processes, and warns of those near a limit.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from agentbox.policy.limits.gauge import Breach, Gauge
from agentbox.policy.limits.registry import POLL_SECONDS, POLL_SECONDS_AT_WARNING, WARN_AT
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import kernel_memory, pss
from agentbox.sandbox.monitor.cpu_priority import CpuPriority
from agentbox.sandbox.spec import AGENT_NICE

_PEAKS_SECONDS = 1.0  # between two reports of grown peaks
# pause after reading maps, as a multiple of its duration: a fifth of a CPU at most
_REST_FACTOR = 4
_MAX_REST = 0.25
_MAX_PAUSE = 0.75  # between two slow polls: a tree is ended within 2 s of exceeding a limit

Kind = Literal["breach", "warning"]


@dataclass(frozen=True)
class TreeLimits:
    """The limits of one tree, which the host identifies by number; 0 = none. `private`: its
    directory, "" = none.
    """

    number: int
    memory: int
    pids: int
    cpu: float = 0
    nice: int = AGENT_NICE
    private: str = ""
    tmp: int = 0
    branch_disk: int = 0
    box_memory: int = 0  # of all trees together


class _WatchedTree:
    """The state of one tree."""

    def __init__(self, limits: TreeLimits) -> None:
        self.memory, self.pids = Gauge("memory", limits.memory), Gauge("pids", limits.pids)
        self.reported_peaks: dict[str, float] = {}
        self.next_maps_read = 0.0  # its maps are not read before
        self.pss = self.overhead = 0
        self.cpu_priority = CpuPriority(limits.nice)

    @property
    def peaks(self) -> dict[str, float]:
        return {"memory": self.memory.peak, "pids": self.pids.peak}


class Watchdog:
    """`pause`: seconds until the next poll."""

    def __init__(self) -> None:
        self.pause = POLL_SECONDS
        self._watched: dict[int, _WatchedTree] = {}  # by pid of the reaper
        self._next_peaks = 0.0
        self._pss_total = pss.PssTotal()
        self._next_total = 0.0  # the total is not computed before
        self.tasks: dict[
            int, int
        ] = {}  # by pid of the reaper: processes and threads at the last poll, the reaper included

    def poll(self, trees: Mapping[int, TreeLimits]) -> Iterator[tuple[int, Kind, Breach]]:
        """Yields (reaper pid, kind, breach) for each tree that crossed a limit or 80 % of one. Sets
        `pause`.
        """
        started = time.process_time()
        table = tree.scan(omit=trees)
        nearest = 0.0
        for ended in self._watched.keys() - trees.keys():
            del self._watched[ended]
        rows_by_reaper = tree.descendants_by_root(table, trees)
        self.tasks = {
            reaper: 1 + sum(row.threads for row in rows) for reaper, rows in rows_by_reaper.items()
        }
        if (box_breach := self._check_box_memory(rows_by_reaper, trees)) is not None:
            yield box_breach
            del rows_by_reaper[box_breach[0]]
        for reaper, rows in rows_by_reaper.items():
            limits = trees[reaper]
            watched = self._watched.get(reaper) or self._watched.setdefault(
                reaper, _WatchedTree(limits)
            )
            living = [row for row in rows if row.state not in "ZX"]
            resident = sum(row.rss for row in living) * tree.PAGE_SIZE
            nearest = max(
                nearest, _share(resident, limits.memory), _share(len(living), limits.pids)
            )
            if limits.pids and len(living) > limits.pids:
                yield reaper, "breach", Breach(limit="pids", observed=len(living), cap=limits.pids)
                continue
            if hidden := sum(map(tree.is_unreadable, living)):
                yield reaper, "breach", Breach(limit="unreadable", observed=hidden, cap=0)
                continue
            used = self._used_memory(watched, living, resident, limits.memory)
            if limits.memory and used > limits.memory:
                yield reaper, "breach", Breach(limit="memory", observed=used, cap=limits.memory)
                continue
            watched.cpu_priority.update(living, limits.cpu)
            for warning in (watched.memory.observe(used), watched.pids.observe(len(living))):
                if warning is not None:
                    yield reaper, "warning", warning
        duration = time.process_time() - started
        self.pause = max(
            POLL_SECONDS_AT_WARNING if nearest > 0.5 else POLL_SECONDS,
            min(_MAX_PAUSE, _REST_FACTOR * duration),
        )

    def grown_peaks(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Yields (reaper pid, peaks by limit) of trees whose peaks grew since the last report; once
        a second.
        """
        now = time.monotonic()
        if now < self._next_peaks:
            return
        self._next_peaks = now + _PEAKS_SECONDS
        for reaper, watched in self._watched.items():
            if (peaks := watched.peaks) != watched.reported_peaks:
                watched.reported_peaks = peaks
                yield reaper, peaks

    def final_peaks(self, reaper: int) -> dict[str, float]:
        """The peaks of an ended tree; empty if it was never polled."""
        watched = self._watched.pop(reaper, None)
        return watched.peaks if watched else {}

    def _check_box_memory(
        self, rows_by_reaper: Mapping[int, list[tree.Process]], trees: Mapping[int, TreeLimits]
    ) -> tuple[int, Kind, Breach] | None:
        """The tree that uses most, if all together use more than the box can spare."""
        cap = min((limits.box_memory for limits in trees.values() if limits.box_memory), default=0)
        now = time.monotonic()
        if not cap or now < self._next_total:
            return None
        used = self._pss_total.above(cap, rows_by_reaper)
        self._next_total = _next_allowed(now)
        if used is None:
            return None
        largest = max(used, key=lambda reaper: used[reaper])
        return largest, "breach", Breach(limit="box_memory", observed=sum(used.values()), cap=cap)

    @staticmethod
    def _used_memory(
        watched: _WatchedTree, rows: list[tree.Process], resident: int, cap: int
    ) -> int:
        """Bytes, as exact as needed: resident sizes count a shared page once per process, so near
        the limit the PSS and the kernel overhead are read, unless that was just done and was slow.
        """
        threshold = WARN_AT * cap
        if not cap or resident + kernel_memory.upper_bound(rows) <= threshold:
            return resident
        now = time.monotonic()
        if now >= watched.next_maps_read:
            watched.overhead = kernel_memory.measure(rows)
            # Huge page tables take long to walk, and exceed the limit alone.
            exact = threshold < resident and watched.overhead <= cap
            watched.pss = pss.measure_tree(rows) if exact else resident
            watched.next_maps_read = _next_allowed(now)
        return watched.overhead + (watched.pss if resident > threshold else resident)


def _next_allowed(started: float) -> float:
    """When an operation that began then and has just ended may run again."""
    finished = time.monotonic()
    return finished + min(_MAX_REST, _REST_FACTOR * (finished - started))


def _share(observed: int, cap: int) -> float:
    return observed / cap if cap else 0.0
