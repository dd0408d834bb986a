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
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

WATCH_BYTES: Final = 256  # bytes: struct epitem and struct eppoll_entry, in slabs
MAX_WATCHES: Final = 65_536
MIN_WATCHES: Final = 512  # watches, however little memory the agent has
_SHARE_OF_USER, _SHARE_OF_MEMORY = 20, 16
_GROUP_SIZE: Final = (
    250  # the kernel lets one file, here the pipe, be watched over 500 ways of two steps
)
_OWN_WATCHES: Final = 2  # watches with each instance
_ATTEMPTS: Final = 8
_PAUSE_SECONDS: Final = 0.001
_LIMIT: Final = "/proc/sys/fs/epoll/max_user_watches"
_TARGET: Final = "anon_inode:[eventpoll]"  # proc(5), of /proc/<pid>/fd
_ADD: Final = 1  # EPOLL_CTL_ADD, linux/eventpoll.h
_EVENT: Final = struct.Struct(
    "=IQ" if platform.machine() == "x86_64" else "=I4xQ"
)  # struct epoll_event
_libc = ctypes.CDLL(None, use_errno=True)


class EpollHandler:
    """Of the tree below the calling process, of `memory` bytes; 0 is no limit of that kind."""

    def __init__(self, notify_fd: NotificationFd, memory: int) -> None:
        self._notify_fd, self._memory, self._watch_count, self._last_number = (
            notify_fd,
            memory,
            0,
            0,
        )
        self._groups: list[_InstanceGroup] = []

    @cached_property
    def maximum(self) -> int:
        """Watches."""
        with open(_LIMIT, "rb") as stream:  # noqa: PTH123 - few imports
            shares = [MAX_WATCHES, int(stream.read()) // _SHARE_OF_USER]
        if self._memory:
            shares.append(max(MIN_WATCHES, self._memory // _SHARE_OF_MEMORY // WATCH_BYTES))
        return min(shares)

    def make(self, notification: Notification) -> None:
        """epoll_create, epoll_create1. Raises Denied (ENOSPC) at the limit, and OSError."""
        flags = notification.int_argument(0) if notification.call == "epoll_create1" else 0
        if flags & ~select.EPOLL_CLOEXEC or (
            notification.call == "epoll_create" and notification.int_argument(0) <= 0
        ):
            raise OSError(errno.EINVAL, "no such instance")
        self._reserve(_OWN_WATCHES)
        with select.epoll() as instance:
            self._last_number += 1
            self._current_group().add(instance.fileno(), self._last_number)
            self._notify_fd.send_fd(notification, instance.fileno(), cloexec=bool(flags))

    def add(self, notification: Notification) -> None:
        """EPOLL_CTL_ADD: goes on, or raises Denied (ENOSPC, as the kernel says it) at the limit. What it adds to is of no
        matter."""
        self._reserve(1)
        self._notify_fd.continue_syscall(notification)

    def _reserve(self, count: int) -> None:
        if self._watch_count + count > self.maximum:
            self._recount()
            if self._watch_count + count > self.maximum:
                raise DeniedCall(errno.ENOSPC, "epoll", f"watches at the limit of {self.maximum}")
        self._watch_count += count

    def _recount(self) -> None:
        """A process that ends has its instances a moment longer than its table: a look that misses some is repeated."""
        for _ in range(_ATTEMPTS):
            counts = self._watches_by_instance()
            live = self._live_instances()
            if live <= counts.keys():
                self._watch_count = sum(counts.values()) + len(live)
                return
            time.sleep(_PAUSE_SECONDS)

    def _live_instances(self) -> set[int]:
        """The numbers of all instances that anything still refers to; a shelf without one is closed."""
        numbers: set[int] = set()
        for group in list(self._groups):
            if live := group.live_instances():
                numbers |= live
            else:
                self._groups.remove(group)
                group.close()
        return numbers

    def _watches_by_instance(self) -> dict[int, int]:
        """The watches of each instance that the tree has open, by its number."""
        counts: dict[int, int] = {}
        members = [row.procfs_id for row in tree.descendants(tree.scan(), [os.getpid()])]
        for path, target in usage.descriptors(members):
            if target == _TARGET:
                with suppress(OSError):  # closed meanwhile
                    rows = list(_read_watches(path.replace("/fd/", "/fdinfo/")))
                    numbers = {
                        int(row[5], 16)
                        for row in rows
                        for group in self._groups
                        if row[-2:] == group.marker
                    }
                    counts |= dict.fromkeys(numbers, len(rows))
        return counts

    def _current_group(self) -> "_InstanceGroup":
        if not self._groups or self._groups[-1].size >= _GROUP_SIZE:
            self._groups.append(_InstanceGroup())
        return self._groups[-1]


class _InstanceGroup:
    """Instances that the reaper knows by number."""

    def __init__(self) -> None:
        self.size = 0
        self._pipe = os.pipe()
        self._epoll = select.epoll()
        row = os.fstat(self._pipe[0])
        device = os.major(row.st_dev) << 20 | os.minor(row.st_dev)
        self.marker = [b"ino:%x" % row.st_ino, b"sdev:%x" % device]  # as fdinfo has it

    def close(self) -> None:
        """Of one that has none left."""
        self._epoll.close()
        for end in self._pipe:
            os.close(end)

    def add(self, instance: int, number: int) -> None:
        """Raises OSError."""
        _add_watch(instance, self._pipe[0], number)
        _add_watch(self._epoll.fileno(), instance, number)
        self.size += 1

    def live_instances(self) -> set[int]:
        """As of `Polling`."""
        return {
            int(row[5], 16) for row in _read_watches(f"/proc/self/fdinfo/{self._epoll.fileno()}")
        }


def _add_watch(instance: int, target: int, number: int) -> None:
    """For nothing."""
    if _libc.epoll_ctl(instance, _ADD, target, _EVENT.pack(0, number)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _read_watches(path: str) -> Iterator[list[bytes]]:
    """`tfd: 4 events: 0 data: 1 pos:0 ino:10ca84d sdev:f`, by words (proc(5), fdinfo)."""
    with open(path, "rb", buffering=1 << 20) as stream:  # noqa: PTH123 - few imports
        for line in stream:
            if line.startswith(b"tfd:"):
                yield line.split()
