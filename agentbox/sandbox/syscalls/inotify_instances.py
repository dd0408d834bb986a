"""The inotify instances of an agent. The reaper keeps a descriptor of each, to add watches to: it cannot take one out of the
agent (pidfd_getfd(2) is not for containers).

All descriptors of such share one inode, so which one a process means is known from where it was put. Else a status flag of
each is set that instances have no use for, and read beside the agent's. An agent that sets it meanwhile confuses but its own.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import usage

INOTIFY_TARGET: Final = "anon_inode:inotify"  # proc(5), of /proc/<pid>/fd
_REST_FACTOR: Final = 20  # times what a look took is at least between two, so that they cost a twentieth of a CPU at most
_POLL_SECONDS: Final = (
    2.0  # the kernel has so many for all of a user: what the agent has closed is let go
)
_FLAGS: Final = b"flags:"  # proc(5), `fdinfo`: octal
# To read that file the kernel writes a line for each watch: so many lines, about a tenth of a second, are read at most.
_MAX_LINES: Final = 20_000
_BASE_LINES: Final = 20  # what such a file costs without a watch


class InotifyInstances:
    """By our descriptor, and by the paths of the agent's descriptors in /proc."""

    def __init__(self) -> None:
        self._watches: dict[int, int] = {}  # by ours, how many at most
        self._paths: dict[str, int] = {}
        self._next_poll = 0.0

    def __len__(self) -> int:
        return len(self._watches)

    def add(self, fd: int, process: int, number: int) -> None:
        """A new one, which that process has under that number. It is ours to close."""
        self._watches[fd] = 0
        self._paths[f"/proc/{process}/fd/{number}"] = fd

    def find(self, thread: int, number: int) -> int | None:
        """Ours of the instance that the thread has under that number; None where that is none of these. Raises OSError (EBADF)
        where it has nothing there."""
        path = f"/proc/{thread}/fd/{number}"
        if path not in self._paths:
            path = _descriptor_path(thread, number)
        if os.readlink(path) != INOTIFY_TARGET:  # noqa: PTH115 - few imports
            return None
        if path not in self._paths:
            self._identify([path])
        if (fd := self._paths.get(path)) is not None:
            self._watches[fd] += 1
        return fd

    def next_poll(self) -> float | None:
        """Seconds until `look` wants to be called."""
        return max(0.0, self._next_poll - time.monotonic()) if self._watches else None

    def poll(self) -> None:
        """Tidies, each two seconds."""
        if self._watches and (started := time.monotonic()) >= self._next_poll:
            self.clean_up()
            finished = time.monotonic()
            self._next_poll = finished + max(_POLL_SECONDS, _REST_FACTOR * (finished - started))

    def clean_up(self) -> None:
        """Lets go of what the agent has closed."""
        self._paths = {
            path: fd for path, fd in self._paths.items() if _target(path) == INOTIFY_TARGET
        }
        if self._watches.keys() == set(self._paths.values()):
            return
        members = tree.descendants(tree.scan(), [os.getpid()])
        descriptors = usage.descriptors(row.procfs_id for row in members)
        unknown = [
            path
            for path, target in descriptors
            if target == INOTIFY_TARGET and path not in self._paths
        ]
        if self._identify(unknown) and not may_be_in_flight(members, descriptors):
            for closed in self._watches.keys() - set(self._paths.values()):
                del self._watches[closed]
                os.close(closed)

    def _identify(self, paths: Collection[str]) -> bool:
        """Learns which of ours is behind each path: our numbers, counted from 1, are shown by the flag bit by bit. Whether that
        was not too much to read."""
        numbers = dict(enumerate(self._watches, start=1))
        bits = len(numbers).bit_length()
        if len(paths) * bits * (_BASE_LINES + sum(self._watches.values())) > _MAX_LINES:
            return False
        identified = dict.fromkeys(paths, 0)
        try:
            for bit in range(bits if paths else 0):
                for number, fd in numbers.items():
                    _set_marker(fd, marked=bool(number >> bit & 1))
                for path in paths:
                    identified[path] |= _is_marked(path) << bit
        finally:
            for fd in numbers.values():
                _set_marker(fd, marked=False)
        self._paths |= {
            path: numbers[number] for path, number in identified.items() if number in numbers
        }
        return True


def may_be_in_flight(
    members: Iterable[tree.Process], descriptors: Iterable[tuple[str, str]]
) -> bool:
    """Whether descriptors of these processes that may be instances are shown to nobody, or wait in sockets."""
    sockets = (path for path, target in descriptors if target.startswith("socket:"))
    return any(map(tree.is_unreadable, members)) or any(map(usage.has_in_flight_fds, sockets))


def _descriptor_path(thread: int, number: int) -> str:
    """All threads of a process share their descriptors: that of the first, where it lives. Raises OSError."""
    paths = [f"/proc/{task}/fd/{number}" for task in (tree.thread_group_id(thread), thread)]
    return next((path for path in paths if _target(path)), paths[0])


def _set_marker(fd: int, *, marked: bool) -> None:
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    if bool(flags & os.O_APPEND) != marked:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags ^ os.O_APPEND)


def _is_marked(path: str) -> bool:
    return any(int(flags, 8) & os.O_APPEND for flags in _flags(path))


def _flags(path: str) -> Iterator[bytes]:
    with contextlib.suppress(OSError), open(path.replace("/fd/", "/fdinfo/"), "rb") as stream:  # noqa: PTH123 - few imports
        yield from (line[len(_FLAGS) :] for line in stream if line.startswith(_FLAGS))


def _target(path: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(path)  # noqa: PTH115 - few imports
    return ""
