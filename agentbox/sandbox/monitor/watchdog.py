"""Looks at the trees of all agents: names those beyond their memory or their number of processes and those that hide what they
hold, warns of those near a limit."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from agentbox.policy.limits.gauge import Breach, Gauge
from agentbox.policy.limits.registry import LOOK_FAR, LOOK_NEAR, WARN_AT
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import overhead, proportional
from agentbox.sandbox.monitor.turns import Turns

_PEAKS_SECONDS = 1.0  # between two words about grown peaks
_REST = 4  # times what reading the maps took, so that a tree of many processes near its limit costs a fifth of a CPU at most
_LONGEST_REST = 0.25
_LONGEST_PAUSE = 0.75  # between two looks, where each takes long: whoever crosses a limit is ended within 2 s of it

Kind = Literal["breach", "warning"]


@dataclass(frozen=True)
class Bounds:
    """Of one tree, which the host knows by its number; 0 = none. `private`: its folder, "" = it has none."""

    number: int
    memory: int
    pids: int
    cpu: float = 0
    private: str = ""
    tmp: int = 0
    branch_disk: int = 0
    box_memory: int = 0  # of all trees together


class _Watched:
    """What is remembered of one tree."""

    def __init__(self, bounds: Bounds) -> None:
        self.memory, self.pids = Gauge("memory", bounds.memory), Gauge("pids", bounds.pids)
        self.told: dict[str, float] = {}
        self.maps_at = 0.0  # before this moment its maps are not read again
        self.proportional = self.overhead = 0
        self.turns = Turns()

    @property
    def peaks(self) -> dict[str, float]:
        return {"memory": self.memory.peak, "pids": self.pids.peak}


class Watchdog:
    """`pause`: seconds until the next look."""

    def __init__(self) -> None:
        self.pause = LOOK_FAR
        self._watched: dict[int, _Watched] = {}  # by pid of the reaper
        self._peaks_at = 0.0
        self._sum = proportional.Sum()
        self._sum_at = 0.0  # before this moment the sum of all is not asked for again
        self.tasks: dict[
            int, int
        ] = {}  # by pid of the reaper: processes and threads at the last look, the reaper's too

    def look(self, trees: Mapping[int, Bounds]) -> Iterator[tuple[int, Kind, Breach]]:
        """Yields (reaper pid, kind, what) for each tree that crossed a limit or 80 % of one. Sets `pause`."""
        began = time.process_time()
        table = tree.scan()
        nearest = 0.0
        for gone in self._watched.keys() - trees.keys():
            del self._watched[gone]
        found = tree.by_root(table, trees)
        self.tasks = {reaper: 1 + sum(row.threads for row in rows) for reaper, rows in found.items()}
        if (over := self._over_the_box(found, trees)) is not None:
            yield over
            del found[over[0]]
        for reaper, rows in found.items():
            bounds = trees[reaper]
            watched = self._watched.get(reaper) or self._watched.setdefault(reaper, _Watched(bounds))
            living = [row for row in rows if row.state not in "ZX"]
            resident = sum(row.rss for row in living) * tree.PAGE
            nearest = max(nearest, _share(resident, bounds.memory), _share(len(living), bounds.pids))
            if bounds.pids and len(living) > bounds.pids:
                yield reaper, "breach", Breach(limit="pids", observed=len(living), cap=bounds.pids)
                continue
            if hidden := sum(map(tree.hides, living)):
                yield reaper, "breach", Breach(limit="unreadable", observed=hidden, cap=0)
                continue
            used = self._memory(watched, living, resident, bounds.memory)
            if bounds.memory and used > bounds.memory:
                yield reaper, "breach", Breach(limit="memory", observed=used, cap=bounds.memory)
                continue
            watched.turns.keep(living, bounds.cpu)
            for warning in (watched.memory.see(used), watched.pids.see(len(living))):
                if warning is not None:
                    yield reaper, "warning", warning
        took = time.process_time() - began
        self.pause = max(LOOK_NEAR if nearest > 0.5 else LOOK_FAR, min(_LONGEST_PAUSE, _REST * took))

    def grown(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Yields (reaper pid, peaks by limit) of the trees whose peaks grew since they were last told; once a second."""
        now = time.monotonic()
        if now < self._peaks_at:
            return
        self._peaks_at = now + _PEAKS_SECONDS
        for reaper, watched in self._watched.items():
            if (peaks := watched.peaks) != watched.told:
                watched.told = peaks
                yield reaper, peaks

    def last(self, reaper: int) -> dict[str, float]:
        """The peaks of a tree that is gone; empty when no look met it."""
        watched = self._watched.pop(reaper, None)
        return watched.peaks if watched else {}

    def _over_the_box(
        self, found: Mapping[int, list[tree.Process]], trees: Mapping[int, Bounds]
    ) -> tuple[int, Kind, Breach] | None:
        """The tree that uses most, where all together use more than the box can spare."""
        cap = min((bounds.box_memory for bounds in trees.values() if bounds.box_memory), default=0)
        now = time.monotonic()
        if not cap or now < self._sum_at:
            return None
        used = self._sum.above(cap, found)
        self._sum_at = _rested(now)
        if used is None:
            return None
        largest = max(used, key=lambda reaper: used[reaper])
        return largest, "breach", Breach(limit="box_memory", observed=sum(used.values()), cap=cap)

    @staticmethod
    def _memory(watched: _Watched, rows: list[tree.Process], resident: int, cap: int) -> int:
        """Bytes, as exact as it matters: resident sizes count a shared page once a process, so near the limit the
        proportional ones are read, and what the kernel keeps beside them, unless that was just done and took long."""
        near = WARN_AT * cap
        if not cap or resident + overhead.at_most(rows) <= near:
            return resident
        now = time.monotonic()
        if now >= watched.maps_at:
            watched.overhead = overhead.measured(rows)
            # Tables without end take long to walk, and are enough without it.
            exact = near < resident and watched.overhead <= cap
            watched.proportional = proportional.of_tree(rows) if exact else resident
            watched.maps_at = _rested(now)
        return watched.overhead + (watched.proportional if resident > near else resident)


def _rested(began: float) -> float:
    """When that may be done again which began then and has just ended."""
    done = time.monotonic()
    return done + min(_LONGEST_REST, _REST * (done - began))


def _share(observed: int, cap: int) -> float:
    return observed / cap if cap else 0.0
