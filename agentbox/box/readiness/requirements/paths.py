"""`path not accessible: <path>`: each writable root is still writable. `disk full: <path>`: the
state directory has less space than the journal needs.
"""

import asyncio
import os
import select
from collections.abc import Callable
from pathlib import Path

from agentbox.box.readiness.requirement import Requirement, Wake
from agentbox.core.background.daemon_threads import DaemonThreadRunner
from agentbox.core.files.atomic import probe_file
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

MIN_FREE_BYTES = 1 << 20  # bytes; below it the journal rejects writes
_PROBE = b"agentbox readiness probe\n"


class PathsRequirement(Requirement):
    """Checks every 5 s, and when the kernel reports a change of this process's mounts (proc(5),
    `mountinfo`).
    """

    family = "paths"
    title = "paths:accessible"

    def __init__(self, paths: Paths, plan: Plan) -> None:
        self._state = paths.state
        self._roots = {root: paths.resolve(root) for root in plan.writable_roots}
        self._threads: dict[str, DaemonThreadRunner[bool]] = {
            root: DaemonThreadRunner(f"readiness-{root}") for root in self._roots
        }
        self._mounts: _MountEvents | None = None

    async def check(self) -> tuple[str, ...]:
        """One thread per root, so that only a hanging mount is reported."""
        writable = await asyncio.gather(*(self._is_writable(root) for root in self._roots))
        refused = [
            _missing_text(root)
            for root, works in zip(self._roots, writable, strict=True)
            if not works
        ]
        full = [
            f"disk full: {root}"
            for root, directory in self._roots.items()
            if directory == self._state and is_full(directory)
        ]
        return (*refused, *full)

    def missing_on_timeout(self) -> tuple[str, ...]:
        return tuple(_missing_text(root) for root in self._roots)

    def attach(self, wake: Wake) -> None:
        self._mounts = _MountEvents(wake)

    def detach(self) -> None:
        if self._mounts is not None:
            self._mounts.close()
            self._mounts = None

    async def _is_writable(self, root: str) -> bool:
        try:
            async with asyncio.timeout(self.deadline * 0.75):
                return await self._threads[root](lambda: is_writable(self._roots[root]))
        except TimeoutError:
            return False


def is_writable(directory: Path) -> bool:
    """Writes, reads back, unlinks. No sync, since this runs permanently."""
    try:
        with probe_file(directory) as descriptor:
            written = os.write(descriptor, _PROBE)
            return os.pread(descriptor, written, 0) == _PROBE
    except OSError:
        return False


def is_full(directory: Path) -> bool:
    """Whether its file system has less than 1 MiB left for this user."""
    try:
        stats = os.statvfs(directory)
    except OSError:
        return False  # reported by `is_writable`
    return stats.f_bavail * stats.f_frsize < MIN_FREE_BYTES


class _MountEvents:
    """`mountinfo` is always readable and reports a change by POLLPRI only; a separate epoll set
    turns that into an event.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._file = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.epoll()
        self._poll.register(self._file, select.EPOLLPRI)
        asyncio.get_running_loop().add_reader(self._poll.fileno(), self._read_event)

    def _read_event(self) -> None:
        """The loop's own poll has consumed the event already (`mounts_poll` reports each change
        once per caller).
        """
        self._poll.poll(0)
        self._on_change()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._poll.fileno())
        self._poll.close()
        os.close(self._file)


def _missing_text(root: str) -> str:
    return f"path not accessible: {root}"
