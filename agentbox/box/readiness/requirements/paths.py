"""`path not accessible: <path>`: each writable root still takes a write. `disk full: <path>`: the state folder has
less than the journal needs to go on."""

import asyncio
import os
import select
from collections.abc import Callable
from pathlib import Path

from agentbox.box.readiness.requirement import Requirement, Wake
from agentbox.core.background.daemon_threads import InThread
from agentbox.core.files.atomic import probe_file
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

ROOM = 1 << 20  # bytes; the journal takes nothing below it
_PROBE = b"agentbox readiness probe\n"


class PathsRequirement(Requirement):
    """Every 5 s, and whenever the kernel says that the mounts of this process changed (proc(5), `mountinfo`)."""

    family = "paths"
    listed_as = "paths:accessible"

    def __init__(self, paths: Paths, plan: Plan) -> None:
        self._state = paths.state
        self._roots = {root: paths.at(root) for root in plan.writable_roots}
        self._calls: dict[str, InThread[bool]] = {root: InThread(f"readiness-{root}") for root in self._roots}
        self._mounts: _Mounts | None = None

    async def check(self) -> tuple[str, ...]:
        """One thread a root, so that a mount that hangs is named alone."""
        good = await asyncio.gather(*(self._takes_write(root) for root in self._roots))
        refused = [_text(root) for root, works in zip(self._roots, good, strict=True) if not works]
        full = [
            f"disk full: {root}" for root, folder in self._roots.items() if folder == self._state and is_full(folder)
        ]
        return (*refused, *full)

    def late(self) -> tuple[str, ...]:
        return tuple(_text(root) for root in self._roots)

    def attach(self, wake: Wake) -> None:
        self._mounts = _Mounts(wake)

    def detach(self) -> None:
        if self._mounts is not None:
            self._mounts.close()
            self._mounts = None

    async def _takes_write(self, root: str) -> bool:
        try:
            async with asyncio.timeout(self.deadline * 0.75):
                return await self._calls[root](lambda: takes_write(self._roots[root]))
        except TimeoutError:
            return False


def takes_write(folder: Path) -> bool:
    """Write, read back, unlink. No sync: this runs for ever."""
    try:
        with probe_file(folder) as descriptor:
            written = os.write(descriptor, _PROBE)
            return os.pread(descriptor, written, 0) == _PROBE
    except OSError:
        return False


def is_full(folder: Path) -> bool:
    """Whether its file system has less than 1 MiB left for this user."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False  # `takes_write` tells
    return found.f_bavail * found.f_frsize < ROOM


class _Mounts:
    """`mountinfo` is always readable and tells a change by POLLPRI only; a poll set of its own turns that into an event."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._file = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.epoll()
        self._poll.register(self._file, select.EPOLLPRI)
        asyncio.get_running_loop().add_reader(self._poll.fileno(), self._look)

    def _look(self) -> None:
        """The loop's own poll has taken the event already (`mounts_poll` tells each change once to whoever asks)."""
        self._poll.poll(0)
        self._changed()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._poll.fileno())
        self._poll.close()
        os.close(self._file)


def _text(root: str) -> str:
    return f"path not accessible: {root}"
