"""A child of the launcher that enforces disk limits: samples free space often, walks directories
only while it shrinks.

A tree can have exceeded its cap only if that much was written since its last walk, so it is walked
once half of that is gone; a warned tree also once enough became free for a new warning. Bytes that
vanish into no directory count for a tree that has descriptors in flight in sockets: a deleted file
there is in no table of /proc. Below FREE_FLOOR every agent is stopped until it is known which one
wrote. Below FREE_RESERVE, if no agent exceeds its own cap, the one that uses most is ended.
/dev/shm is memory: a tree may use as much of it as its memory limit.

Datagrams of JSON: in come `{watch, bounds}` and `{forget}` with the pid of a reaper; out go
`{reaper, peaks}`, `{reaper, warning}`, `{reaper, breach}` and `{freeze}`. The scanner itself sends
no signals.
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
from agentbox.policy.limits.gauge import Breach
from agentbox.policy.limits.registry import FREE_FLOOR, FREE_RESERVE
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import disk_usage
from agentbox.sandbox.monitor.scanned_tree import ScannedTree, free_space, remaining_bytes
from agentbox.sandbox.monitor.shared_memory import SharedMemoryUsage
from agentbox.sandbox.monitor.watchdog import TreeLimits

POLL_SECONDS = 0.2  # seconds between two samples of free space
# seconds after which a tree is walked though little vanished: others may have freed what it wrote
SLOW_WALK_SECONDS = 15.0
# pause between two such walks, as a multiple of the time for all: a twentieth of a CPU at most
SLOW_REST_FACTOR = 20
REST_FACTOR = 4  # pause between two rounds of walks, as a multiple of the duration
MAX_WALK_SECONDS = 0.5  # seconds of walks between two samples; trees that wrote most come first
REFREEZE_BYTES = (
    16 << 20
)  # bytes that vanish below the floor before all are stopped again; smaller trees are not ended
_DATAGRAM = 1 << 16


def main(commands: socket.socket, shared_memory: SharedMemoryUsage) -> NoReturn:
    """Never returns; ends with the launcher."""
    code = 1
    try:
        kernel.set_parent_death_signal(signal.SIGKILL)
        DiskScanner(commands, shared_memory=shared_memory).run()
        code = 0
    finally:
        os._exit(code)


class DiskScanner:
    """The loop of the scanner."""

    def __init__(
        self,
        commands: socket.socket,
        floor: int = FREE_FLOOR,
        shared_memory: SharedMemoryUsage | None = None,
        reserve: int = FREE_RESERVE,
    ) -> None:
        self._commands, self._floor, self._shared_memory = (
            commands,
            floor,
            shared_memory or SharedMemoryUsage(),
        )
        self._reserve = reserve
        self._trees: dict[int, ScannedTree] = {}  # by pid of the reaper
        self._free: dict[int, int] = {}  # by device
        self._frozen_at_free: float = float("inf")  # free bytes when all were last stopped
        self._next_walk = 0.0  # no directory is walked before, unless space runs out

    def run(self) -> None:
        """Returns when the launcher closes its end."""
        poll = select.poll()
        poll.register(self._commands, select.POLLIN)
        pause = POLL_SECONDS
        while True:
            if poll.poll(int(pause * 1000) if self._trees else None):
                if not self._handle_message():
                    return
                continue
            started = time.monotonic()
            self.poll()
            pause = max(POLL_SECONDS, time.monotonic() - started)

    def poll(self) -> None:
        """Samples free space and walks the trees that may have exceeded a cap."""
        low = self._record_free_space()
        if low:
            self._send({"freeze": True})
        try:
            if low or time.monotonic() >= self._next_walk:
                started = time.process_time()
                crossed = self._walk_due(walk_all=low)
                self._next_walk = time.monotonic() + REST_FACTOR * (time.process_time() - started)
                if low and not crossed:
                    self._enforce_reserve()
        finally:
            if low:
                self._send({"freeze": False})
        if self._shared_memory.is_due():
            self._poll_shared_memory()

    def _poll_shared_memory(self) -> None:
        table = tree.scan()
        members = {
            reaper: [row.procfs_id for row in rows]
            for reaper, rows in tree.descendants_by_root(table, self._trees).items()
        }
        for reaper, used in self._shared_memory.poll(members, list(table)).items():
            cap = self._trees[reaper].limits.memory
            if cap and used > cap:
                self._report_breach(reaper, "memory", used, cap)

    def _report_breach(self, reaper: int, limit: str, used: float, cap: float) -> None:
        self._send(
            {"reaper": reaper, "breach": asdict(Breach(limit=limit, observed=used, cap=cap))}
        )
        del self._trees[reaper]

    def _handle_message(self) -> bool:
        data = self._commands.recv(_DATAGRAM)
        if not data:
            return False
        message = json.loads(data)
        if "watch" in message:
            if not self._trees:  # nothing was sampled meanwhile
                self._free.clear()
            watched = self._trees[message["watch"]] = ScannedTree(TreeLimits(**message["bounds"]))
            with contextlib.suppress(OSError):  # before the agent writes
                self._free.setdefault(*free_space(watched.limits.private)[:2])
            self._shared_memory.invalidate()
        else:
            self._trees.pop(message["forget"], None)
            self._shared_memory.discard(message["forget"])
        return True

    def _record_free_space(self) -> bool:
        """Adds the vanished bytes to every tree of the device. True if all must be stopped now."""
        lowest = float("inf")
        devices: dict[int, list[ScannedTree]] = {}
        for entry in self._trees.values():
            with contextlib.suppress(OSError):  # its directory was removed with it
                device = os.stat(entry.limits.private).st_dev  # noqa: PTH116
                devices.setdefault(device, []).append(entry)
        for device, watched in devices.items():
            with contextlib.suppress(OSError):
                _, free, available = free_space(watched[0].limits.private)
                lowest = min(lowest, available)
                vanished = self._free.get(device, free) - free
                self._free[device] = free
                for entry in watched:
                    entry.device, entry.free = device, available
                    entry.vanished += max(0, vanished)
                    entry.freed += max(0, -vanished)
        if lowest >= self._floor:
            self._frozen_at_free = float("inf")
            return False
        if lowest > self._frozen_at_free - REFREEZE_BYTES:
            return False
        self._frozen_at_free = lowest
        return True

    def _enforce_reserve(self) -> None:
        """No tree exceeds its own cap, but together they leave too little: ends the one that uses
        most there.
        """
        candidates = [
            (reaper, entry)
            for reaper, entry in self._trees.items()
            if entry.used >= REFREEZE_BYTES and entry.free < self._reserve
        ]
        if candidates:
            reaper, entry = max(candidates, key=lambda pair: pair[1].used)
            self._report_breach(reaper, "free_reserve", entry.free, self._reserve)

    def _walk_due(self, *, walk_all: bool) -> bool:
        """True if a tree exceeded a cap."""
        now = time.monotonic()
        slow_after = max(
            SLOW_WALK_SECONDS,
            SLOW_REST_FACTOR * sum(entry.walk_seconds for entry in self._trees.values()),
        )
        due = {
            reaper: entry
            for reaper, entry in self._trees.items()
            if walk_all or entry.is_due(now, slow_after)
        }
        if not due:
            return False
        members = {
            reaper: [row.procfs_id for row in rows]
            for reaper, rows in tree.descendants_by_root(tree.scan(omit=self._trees), due).items()
        }
        crossed = False
        for reaper in self._by_bytes_written(due, members):
            exceeded = self._walk(reaper, due[reaper], members[reaper])
            crossed = crossed or exceeded
            if exceeded if walk_all else time.monotonic() > now + MAX_WALK_SECONDS:
                return crossed
        for reaper in due.keys() & self._trees.keys():
            crossed = self._check_hidden(reaper, due[reaper]) or crossed
        return crossed

    def _by_bytes_written(
        self, due: Mapping[int, ScannedTree], members: Mapping[int, list[int]]
    ) -> Iterator[int]:
        """The trees in order of bytes written since the last walk, most first."""
        new_bytes = {}
        for reaper, entry in due.items():
            total = disk_usage.written_bytes(members[reaper])
            new_bytes[reaper], entry.written = total - entry.written, total
        yield from sorted(new_bytes, key=lambda reaper: -new_bytes[reaper])

    def _walk(self, reaper: int, entry: ScannedTree, members: list[int]) -> bool:
        """True if the tree exceeded a cap."""
        vanished = entry.vanished - entry.freed - entry.explained
        entry.vanished, entry.freed, entry.explained, started = 0, 0, 0, time.monotonic()
        measured = disk_usage.measure_usage(entry.limits.private, members)
        self._record_walk(entry, measured, vanished)
        entry.walked_at = time.monotonic()
        entry.walk_seconds = entry.walked_at - started
        entry.remaining = (
            remaining_bytes(entry.limits.tmp, measured.tmp),
            remaining_bytes(entry.limits.branch_disk, measured.branch_disk),
        )
        grown = False
        for gauge, used in zip(entry.gauges, (measured.tmp, measured.branch_disk), strict=True):
            if gauge.cap and used > gauge.cap:
                self._report_breach(reaper, gauge.limit, used, gauge.cap)
                return True
            grown = grown or used > gauge.peak
            if warning := gauge.observe(used):
                self._send({"reaper": reaper, "warning": asdict(warning)})
        if grown:
            self._send(
                {"reaper": reaper, "peaks": {gauge.limit: gauge.peak for gauge in entry.gauges}}
            )
        return False

    def _record_walk(
        self, entry: ScannedTree, measured: disk_usage.DiskUsage, vanished: int
    ) -> None:
        """Vanished bytes that are found in this tree explain them to all trees; the rest may be in
        files that only in-flight descriptors keep.
        """
        used = measured.tmp + measured.branch_disk
        grown = used - entry.used
        entry.hidden_before = entry.hidden
        entry.hidden = max(0, entry.hidden + vanished - grown) if measured.in_flight else 0
        entry.used = used
        for other in self._trees.values():
            if other is not entry and other.device == entry.device:
                other.explained += grown

    def _check_hidden(self, reaper: int, entry: ScannedTree) -> bool:
        """Compares two walks, between which all other writers were walked too. True if a cap was
        exceeded.
        """
        hidden = min(entry.hidden, entry.hidden_before)
        gauge, remaining = min(
            zip(entry.gauges, entry.remaining, strict=True), key=lambda pair: pair[1]
        )
        if hidden > remaining:
            self._report_breach(reaper, gauge.limit, gauge.cap - remaining + hidden, gauge.cap)
        return hidden > remaining

    def _send(self, message: Mapping[str, Any]) -> None:
        self._commands.send(json.dumps(message).encode())
