"""epoll(7): the kernel has one number of watches (fs.epoll.max_user_watches) for all processes of a user, those of the control
plane too, so each EPOLL_CTL_ADD is counted. The number of instances says nothing: a watch is of a file and a number, and
a process that has 500 files open and moves them over 500 numbers has 250,000 in one instance.

What is kept is an upper bound: each answer adds, and no end is seen. Only where that bound meets the most are the watches
counted, as /proc shows them of each instance that a process has open. That all which exist are seen then is known from two
watches that the reaper makes with each: its own on the instance, which goes when the instance does, and one of the
instance on a pipe that no agent has, which names it. One that is in no table of descriptors, but in a socket under way or
in a call of a thread, leaves the bound as it is.

The most is a twentieth of the user's watches, 65,536 where those are more, and what fills a sixteenth of the agent's
memory. A machine of 8 GiB has 1.8 million: 27 agents at their most, or ten times as many that use a tenth of it.
"""

import ctypes
import errno
import os
import platform
import select
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import usage
from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.listener import Listener, Notice

WATCH: Final = 256  # bytes: struct epitem and struct eppoll_entry, in slabs
MOST: Final = 65_536
LEAST: Final = 512  # watches, however little memory the agent has
_SHARE_OF_USER, _SHARE_OF_MEMORY = 20, 16
_A_SHELF: Final = 250  # the kernel lets one file, here the pipe, be watched over 500 ways of two steps
_OURS: Final = 2  # watches with each instance
_LOOKS: Final = 8
_PAUSE_SECONDS: Final = 0.001
_LIMIT: Final = "/proc/sys/fs/epoll/max_user_watches"
_TARGET: Final = "anon_inode:[eventpoll]"  # proc(5), of /proc/<pid>/fd
_ADD: Final = 1  # EPOLL_CTL_ADD, linux/eventpoll.h
_EVENT: Final = struct.Struct("=IQ" if platform.machine() == "x86_64" else "=I4xQ")  # struct epoll_event
_libc = ctypes.CDLL(None, use_errno=True)


class Polling:
    """Of the tree below the calling process, of `memory` bytes; 0 is no limit of that kind."""

    def __init__(self, listener: Listener, memory: int) -> None:
        self._listener, self._memory, self._held, self._last = listener, memory, 0, 0
        self._shelves: list[_Shelf] = []

    @cached_property
    def most(self) -> int:
        """Watches."""
        with open(_LIMIT, "rb") as stream:  # noqa: PTH123 - few imports
            shares = [MOST, int(stream.read()) // _SHARE_OF_USER]
        if self._memory:
            shares.append(max(LEAST, self._memory // _SHARE_OF_MEMORY // WATCH))
        return min(shares)

    def make(self, notice: Notice) -> None:
        """epoll_create, epoll_create1. Raises Denied (ENOSPC) at the limit, and OSError."""
        flags = notice.low(0) if notice.call == "epoll_create1" else 0
        if flags & ~select.EPOLL_CLOEXEC or (notice.call == "epoll_create" and notice.low(0) <= 0):
            raise OSError(errno.EINVAL, "no such instance")
        self._take(_OURS)
        with select.epoll() as made:
            self._last += 1
            self._shelf().put(made.fileno(), self._last)
            self._listener.give(notice, made.fileno(), cloexec=bool(flags))

    def add(self, notice: Notice) -> None:
        """EPOLL_CTL_ADD: goes on, or raises Denied (ENOSPC, as the kernel says it) at the limit. What it adds to is of no
        matter."""
        self._take(1)
        self._listener.go_on(notice)

    def _take(self, count: int) -> None:
        if self._held + count > self.most:
            self._count()
            if self._held + count > self.most:
                raise Denied(errno.ENOSPC, "epoll", f"watches at the limit of {self.most}")
        self._held += count

    def _count(self) -> None:
        """A process that ends has its instances a moment longer than its table: a look that misses some is repeated."""
        for _ in range(_LOOKS):
            seen = self._seen()
            alive = self._alive()
            if alive <= seen.keys():
                self._held = sum(seen.values()) + len(alive)
                return
            time.sleep(_PAUSE_SECONDS)

    def _alive(self) -> set[int]:
        """The numbers of all instances that anything still refers to; a shelf without one is closed."""
        found: set[int] = set()
        for shelf in list(self._shelves):
            if alive := shelf.alive():
                found |= alive
            else:
                self._shelves.remove(shelf)
                shelf.close()
        return found

    def _seen(self) -> dict[int, int]:
        """The watches of each instance that the tree has open, by its number."""
        found: dict[int, int] = {}
        members = [row.shown for row in tree.descendants(tree.scan(), [os.getpid()])]
        for path, target in usage.descriptors(members):
            if target == _TARGET:
                with suppress(OSError):  # closed meanwhile
                    rows = list(_watches(path.replace("/fd/", "/fdinfo/")))
                    names = {int(row[5], 16) for row in rows for one in self._shelves if row[-2:] == one.place}
                    found |= dict.fromkeys(names, len(rows))
        return found

    def _shelf(self) -> "_Shelf":
        if not self._shelves or self._shelves[-1].made >= _A_SHELF:
            self._shelves.append(_Shelf())
        return self._shelves[-1]


class _Shelf:
    """Instances that the reaper knows by number."""

    def __init__(self) -> None:
        self.made = 0
        self._pipe = os.pipe()
        self._ours = select.epoll()
        row = os.fstat(self._pipe[0])
        device = os.major(row.st_dev) << 20 | os.minor(row.st_dev)
        self.place = [b"ino:%x" % row.st_ino, b"sdev:%x" % device]  # as fdinfo has it

    def close(self) -> None:
        """Of one that has none left."""
        self._ours.close()
        for end in self._pipe:
            os.close(end)

    def put(self, instance: int, number: int) -> None:
        """Raises OSError."""
        _watch(instance, self._pipe[0], number)
        _watch(self._ours.fileno(), instance, number)
        self.made += 1

    def alive(self) -> set[int]:
        """As of `Polling`."""
        return {int(row[5], 16) for row in _watches(f"/proc/self/fdinfo/{self._ours.fileno()}")}


def _watch(instance: int, target: int, number: int) -> None:
    """For nothing."""
    if _libc.epoll_ctl(instance, _ADD, target, _EVENT.pack(0, number)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _watches(path: str) -> Iterator[list[bytes]]:
    """`tfd: 4 events: 0 data: 1 pos:0 ino:10ca84d sdev:f`, by words (proc(5), fdinfo)."""
    with open(path, "rb", buffering=1 << 20) as stream:  # noqa: PTH123 - few imports
        for line in stream:
            if line.startswith(b"tfd:"):
                yield line.split()
