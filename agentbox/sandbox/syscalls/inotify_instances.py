"""The inotify instances of an agent. The reaper keeps a descriptor of each to add watches: it
cannot take one from the agent (pidfd_getfd(2) is not available in containers).

All inotify descriptors share one inode, so the instance of a descriptor is known by where it was
sent. Otherwise a status flag that inotify ignores is set on each of the reaper's descriptors and
read from the agent's. An agent that sets it meanwhile confuses only its own instances.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import disk_usage

INOTIFY_TARGET: Final = "anon_inode:inotify"  # proc(5), of /proc/<pid>/fd
# pause after a poll, as a multiple of its duration: a twentieth of a CPU at most
_REST_FACTOR: Final = 20
_POLL_SECONDS: Final = 2.0  # the kernel limits instances per user: closed ones are released
_FLAGS: Final = b"flags:"  # proc(5), `fdinfo`: octal
# fdinfo has a line per watch: this many lines, about a tenth of a second, are read at most.
_MAX_LINES: Final = 20_000
_BASE_LINES: Final = 20  # cost of such a file without a watch


class InotifyInstances:
    """By the reaper's descriptor, and by the paths of the agent's descriptors in /proc."""

    def __init__(self) -> None:
        self._watches: dict[int, int] = {}  # by the reaper's descriptor: upper bound of watches
        self._paths: dict[str, int] = {}
        self._next_poll = 0.0

    def __len__(self) -> int:
        return len(self._watches)

    def add(self, fd: int, process: int, number: int) -> None:
        """Adds a new instance, which that process has under that number. Takes
        ownership of `fd`.
        """
        self._watches[fd] = 0
        self._paths[f"/proc/{process}/fd/{number}"] = fd

    def find(self, thread: int, number: int) -> int | None:
        """The reaper's descriptor of the instance that the thread has under that number; None if it
        is another file. Raises OSError (EBADF) if there is no such descriptor.
        """
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
        """Seconds until `poll` is due."""
        return max(0.0, self._next_poll - time.monotonic()) if self._watches else None

    def poll(self) -> None:
        """Cleans up, every two seconds."""
        if self._watches and (started := time.monotonic()) >= self._next_poll:
            self.clean_up()
            finished = time.monotonic()
            self._next_poll = finished + max(_POLL_SECONDS, _REST_FACTOR * (finished - started))

    def clean_up(self) -> None:
        """Closes the instances that the agent has closed."""
        self._paths = {
            path: fd for path, fd in self._paths.items() if _target(path) == INOTIFY_TARGET
        }
        if self._watches.keys() == set(self._paths.values()):
            return
        members = tree.descendants(tree.scan(), [os.getpid()])
        descriptors = disk_usage.descriptors(row.procfs_id for row in members)
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
        """Identifies the instance behind each path: the flag transmits the instances' numbers,
        counted from 1, bit by bit. False if that would be too much to read.
        """
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
    """Whether these processes may have instances that are unreadable, or in flight in sockets."""
    sockets = (path for path, target in descriptors if target.startswith("socket:"))
    return any(map(tree.is_unreadable, members)) or any(map(disk_usage.has_in_flight_fds, sockets))


def _descriptor_path(thread: int, number: int) -> str:
    """The path below the first thread, if it is alive, since all threads share descriptors. Raises
    OSError.
    """
    paths = [f"/proc/{task}/fd/{number}" for task in (tree.thread_group_id(thread), thread)]
    return next((path for path in paths if _target(path)), paths[0])


def _set_marker(fd: int, *, marked: bool) -> None:
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    if bool(flags & os.O_APPEND) != marked:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags ^ os.O_APPEND)


def _is_marked(path: str) -> bool:
    return any(int(flags, 8) & os.O_APPEND for flags in _flags(path))


def _flags(path: str) -> Iterator[bytes]:
    info = path.replace("/fd/", "/fdinfo/")
    with contextlib.suppress(OSError), open(info, "rb") as stream:  # noqa: PTH123 - few imports
        yield from (line[len(_FLAGS) :] for line in stream if line.startswith(_FLAGS))


def _target(path: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(path)  # noqa: PTH115 - few imports
    return ""
