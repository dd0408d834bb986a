"""A child of the launcher that keeps agents within their disk: looks at free space often, walks folders only while it shrinks.

A tree can have crossed its cap only if that much was written since its last walk, so it is walked once half of that has
gone; one that was warned also once so much came free that it may warn again. Bytes that vanish into nobody's folder count for a tree that has descriptors under way in
sockets meanwhile: a deleted file there is in no table of /proc. Below FREE_FLOOR every agent is stopped first, and goes
on once it is known who wrote. Below FREE_RESERVE, where each keeps to its own cap, the one that holds most ends. /dev/shm is memory: what a tree holds there, on its own, may be as much as its memory, and goes with it.
Datagrams of JSON: in come
`{watch, bounds}` and `{forget}` with the pid of a reaper; out go `{reaper, peaks}`, `{reaper, warning}`, `{reaper, breach}`
and `{freeze}`. It signals nobody itself.
"""

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from agentbox.core.linux import kernel
from agentbox.policy.limits.gauge import Breach, Gauge
from agentbox.policy.limits.registry import FREE_FLOOR, FREE_RESERVE, INODE_BYTES, WALK_SECONDS
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import usage
from agentbox.sandbox.monitor.shared import Shared
from agentbox.sandbox.monitor.watchdog import Bounds

LOOK = 0.2  # seconds between two looks at free space
SLOW = 15.0  # seconds after which a tree is walked though little vanished: what one writes another may have freed
SHARE = 20  # times what all walks take is at least between two such, so that they cost a twentieth of a CPU at most
REST = 4  # times what walking took is between two rounds of it
LONGEST = 0.5  # seconds of walks between two looks; who wrote most comes first, and the others next time
AGAIN = (
    16 << 20
)  # bytes that go on vanishing below the floor before all are stopped once more; who holds less is not ended for it
_DATAGRAM = 1 << 16


def main(commands: socket.socket, shared: Shared) -> NoReturn:
    """Never returns; ends with the launcher."""
    code = 1
    try:
        kernel.signal_me_when_parent_dies(signal.SIGKILL)
        Walker(commands, shared=shared).run()
        code = 0
    finally:
        os._exit(code)


class _Watched:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.gauges = (Gauge("tmp", bounds.tmp), Gauge("branch_disk", bounds.branch_disk))
        self.gone = 0  # bytes that vanished since its last walk, whoever wrote them
        self.freed = 0  # bytes that came free since then
        self.explained = 0  # bytes by which others were found to have grown since then
        self.device = 0
        self.free = 0  # bytes, of that device
        self.used = 0  # at its last walk; before the first it is taken for having written all that it has
        self.hidden = self.hidden_before = (
            0  # bytes that vanished into no folder while descriptors of it were under way
        )
        self.walked = 0.0
        self.took = 0.0
        self.written = 0
        self.room = _room(bounds.tmp, 0), _room(bounds.branch_disk, 0)

    def due(self, now: float, slow: float) -> bool:
        waited = now - self.walked
        if self.hidden:
            return waited >= WALK_SECONDS
        if self.freed > min(gauge.to_rearm for gauge in self.gauges):
            return waited >= WALK_SECONDS
        return waited >= WALK_SECONDS and (2 * self.gone >= min(self.room) or (waited >= slow and self.gone > 0))


def _room(cap: int, used: int) -> float:
    return max(0, cap - used) if cap else float("inf")


def _free(folder: str) -> tuple[int, int, int]:
    """Its device, and of that what is free: bytes with what inodes cost, and bytes. Raises OSError."""
    now = os.statvfs(folder)
    room = now.f_bavail * now.f_frsize
    return os.stat(folder).st_dev, room + now.f_favail * INODE_BYTES, room  # noqa: PTH116


class Walker:
    """One loop."""

    def __init__(
        self, commands: socket.socket, floor: int = FREE_FLOOR, shared: Shared | None = None, reserve: int = FREE_RESERVE
    ) -> None:  # fmt: skip
        self._commands, self._floor, self._shared = commands, floor, shared or Shared()
        self._reserve = reserve
        self._trees: dict[int, _Watched] = {}  # by pid of the reaper
        self._free: dict[int, int] = {}  # by device
        self._stopped_at: float = float("inf")  # bytes free when all were stopped last
        self._walks_at = 0.0  # before this moment no folder is walked, unless room runs out

    def run(self) -> None:
        """Until the launcher closes its end."""
        poll = select.poll()
        poll.register(self._commands, select.POLLIN)
        pause = LOOK
        while True:
            if poll.poll(int(pause * 1000) if self._trees else None):
                if not self._hear():
                    return
                continue
            began = time.monotonic()
            self.look()
            pause = max(LOOK, time.monotonic() - began)

    def look(self) -> None:
        """Once at free space, and at the folders of whoever may have crossed a cap."""
        low = self._shrink()
        if low:
            self._tell({"freeze": True})
        try:
            if low or time.monotonic() >= self._walks_at:
                began = time.process_time()
                crossed = self._walk_those_due(everyone=low)
                self._walks_at = time.monotonic() + REST * (time.process_time() - began)
                if low and not crossed:
                    self._keep_the_reserve()
        finally:
            if low:
                self._tell({"freeze": False})
        if self._shared.due():
            self._look_at_shared()

    def _look_at_shared(self) -> None:
        table = tree.scan()
        members = {reaper: [row.shown for row in rows] for reaper, rows in tree.by_root(table, self._trees).items()}
        for reaper, used in self._shared.look(members, list(table)).items():
            cap = self._trees[reaper].bounds.memory
            if cap and used > cap:
                self._breach(reaper, "memory", used, cap)

    def _breach(self, reaper: int, limit: str, used: float, cap: float) -> None:
        self._tell({"reaper": reaper, "breach": asdict(Breach(limit=limit, observed=used, cap=cap))})
        del self._trees[reaper]

    def _hear(self) -> bool:
        data = self._commands.recv(_DATAGRAM)
        if not data:
            return False
        word = json.loads(data)
        if "watch" in word:
            if not self._trees:  # nobody looked meanwhile
                self._free.clear()
            watched = self._trees[word["watch"]] = _Watched(Bounds(**word["bounds"]))
            with contextlib.suppress(OSError):  # before it writes
                self._free.setdefault(*_free(watched.bounds.private)[:2])
            self._shared.again()
        else:
            self._trees.pop(word["forget"], None)
            self._shared.forget(word["forget"])
        return True

    def _shrink(self) -> bool:
        """Books what vanished on every tree of that device. True when all must be stopped now."""
        lowest = float("inf")
        devices: dict[int, list[_Watched]] = {}
        for one in self._trees.values():
            with contextlib.suppress(OSError):  # its folder went with it
                devices.setdefault(os.stat(one.bounds.private).st_dev, []).append(one)  # noqa: PTH116
        for device, watched in devices.items():
            with contextlib.suppress(OSError):
                _, worth, room = _free(watched[0].bounds.private)
                lowest = min(lowest, room)
                vanished = self._free.get(device, worth) - worth
                self._free[device] = worth
                for one in watched:
                    one.device, one.free = device, room
                    one.gone += max(0, vanished)
                    one.freed += max(0, -vanished)
        if lowest >= self._floor:
            self._stopped_at = float("inf")
            return False
        if lowest > self._stopped_at - AGAIN:
            return False
        self._stopped_at = lowest
        return True

    def _keep_the_reserve(self) -> None:
        """Nobody is over its own cap, and together they leave the box too little: the one that holds most there ends."""
        short = [(reaper, one) for reaper, one in self._trees.items() if one.used >= AGAIN and one.free < self._reserve]
        if short:
            reaper, one = max(short, key=lambda pair: pair[1].used)
            self._breach(reaper, "free_reserve", one.free, self._reserve)

    def _walk_those_due(self, *, everyone: bool) -> bool:
        """True when somebody crossed a cap."""
        now = time.monotonic()
        slow = max(SLOW, SHARE * sum(one.took for one in self._trees.values()))
        due = {reaper: one for reaper, one in self._trees.items() if everyone or one.due(now, slow)}
        if not due:
            return False
        members = {reaper: [row.shown for row in rows] for reaper, rows in tree.by_root(tree.scan(), due).items()}
        crossed = False
        for reaper in self._by_writing(due, members):
            over = self._walk(reaper, due[reaper], members[reaper])
            crossed = crossed or over
            if over if everyone else time.monotonic() > now + LONGEST:
                return crossed
        for reaper in due.keys() & self._trees.keys():
            crossed = self._judge_hidden(reaper, due[reaper]) or crossed
        return crossed

    def _by_writing(self, due: Mapping[int, _Watched], members: Mapping[int, list[int]]) -> Iterator[int]:
        """Those that wrote most since their last walk first."""
        fresh = {}
        for reaper, one in due.items():
            total = usage.written(members[reaper])
            fresh[reaper], one.written = total - one.written, total
        yield from sorted(fresh, key=lambda reaper: -fresh[reaper])

    def _walk(self, reaper: int, one: _Watched, members: list[int]) -> bool:
        """True when it crossed a cap."""
        vanished = one.gone - one.freed - one.explained
        one.gone, one.freed, one.explained, began = 0, 0, 0, time.monotonic()
        found = usage.used(one.bounds.private, members)
        self._book(one, found, vanished)
        one.walked = time.monotonic()
        one.took = one.walked - began
        one.room = _room(one.bounds.tmp, found.tmp), _room(one.bounds.branch_disk, found.branch_disk)
        grown = False
        for gauge, used in zip(one.gauges, (found.tmp, found.branch_disk), strict=True):
            if gauge.cap and used > gauge.cap:
                self._breach(reaper, gauge.limit, used, gauge.cap)
                return True
            grown = grown or used > gauge.peak
            if warning := gauge.see(used):
                self._tell({"reaper": reaper, "warning": asdict(warning)})
        if grown:
            self._tell({"reaper": reaper, "peaks": {gauge.limit: gauge.peak for gauge in one.gauges}})
        return False

    def _book(self, one: _Watched, found: usage.Used, vanished: int) -> None:
        """What of the bytes that vanished since its last walk lies in its folder explains them to all; what lies in nobody's
        may be in files that only descriptors under way keep."""
        used = found.tmp + found.branch_disk
        grown = used - one.used
        one.hidden_before = one.hidden
        one.hidden = max(0, one.hidden + vanished - grown) if found.under_way else 0
        one.used = used
        for other in self._trees.values():
            if other is not one and other.device == one.device:
                other.explained += grown

    def _judge_hidden(self, reaper: int, one: _Watched) -> bool:
        """By what two walks found: between them whoever else wrote was walked too. True when it crossed a cap."""
        hidden = min(one.hidden, one.hidden_before)
        gauge, room = min(zip(one.gauges, one.room, strict=True), key=lambda pair: pair[1])
        if hidden > room:
            self._breach(reaper, gauge.limit, gauge.cap - room + hidden, gauge.cap)
        return hidden > room

    def _tell(self, word: Mapping[str, Any]) -> None:
        self._commands.send(json.dumps(word).encode())
