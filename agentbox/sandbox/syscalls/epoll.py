"""epoll(7): limits the watches of an agent.

The kernel has one limit of watches (fs.epoll.max_user_watches) for all processes of a user, the
control plane included, so each EPOLL_CTL_ADD is counted. A limit of instances would not do: a watch
belongs to a file and a number, and a process that moves 500 open files over 500 numbers has 250,000
watches in one instance.

The stored value is an upper bound: each call adds to it, and removal is not seen. The watches are
counted, from /proc, only when the bound reaches the limit. Two watches that the reaper adds to each
instance show whether all instances were found: its own watch on the instance, which ends with the
instance, and the instance's watch on a private pipe, which identifies it. An instance that is in no
descriptor table, but in flight in a socket or in use by a call, leaves the bound unchanged.

The limit is the least of a twentieth of the user's watches, 65,536, and the watches that fill a
sixteenth of the agent's memory. A machine with 8 GiB has 1.8 million: 27 agents at their limit, or
ten times as many that use a tenth of it.
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
from agentbox.sandbox.monitor import disk_usage
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

WATCH_BYTES: Final = 256  # bytes: struct epitem and struct eppoll_entry, in slabs
MAX_WATCHES: Final = 65_536
MIN_WATCHES: Final = 512  # watches, the minimum for any memory size
_SHARE_OF_USER, _SHARE_OF_MEMORY = 20, 16
_GROUP_SIZE: Final = (
    250  # the kernel allows a file, here the pipe, to be watched over 500 paths of two steps
)
_EXTRA_WATCHES: Final = 2  # additional watches per instance
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
    """The tree below the calling process, with `memory` bytes; 0 means no limit by memory."""

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
        """In watches."""
        with open(_LIMIT, "rb") as stream:  # noqa: PTH123 - few imports
            shares = [MAX_WATCHES, int(stream.read()) // _SHARE_OF_USER]
        if self._memory:
            shares.append(max(MIN_WATCHES, self._memory // _SHARE_OF_MEMORY // WATCH_BYTES))
        return min(shares)

    def make(self, notification: Notification) -> None:
        """epoll_create, epoll_create1. Raises DeniedCall (ENOSPC) at the limit, and OSError."""
        flags = notification.int_argument(0) if notification.call == "epoll_create1" else 0
        if flags & ~select.EPOLL_CLOEXEC or (
            notification.call == "epoll_create" and notification.int_argument(0) <= 0
        ):
            raise OSError(errno.EINVAL, "invalid flags")
        self._reserve(_EXTRA_WATCHES)
        with select.epoll() as instance:
            self._last_number += 1
            self._current_group().add(instance.fileno(), self._last_number)
            self._notify_fd.send_fd(notification, instance.fileno(), cloexec=bool(flags))

    def add(self, notification: Notification) -> None:
        """EPOLL_CTL_ADD, for any file: continues the call, or raises DeniedCall (ENOSPC, as the
        kernel does) at the limit.
        """
        self._reserve(1)
        self._notify_fd.continue_syscall(notification)

    def _reserve(self, count: int) -> None:
        if self._watch_count + count > self.maximum:
            self._recount()
            if self._watch_count + count > self.maximum:
                raise DeniedCall(errno.ENOSPC, "epoll", f"watches at the limit of {self.maximum}")
        self._watch_count += count

    def _recount(self) -> None:
        """The instances of an exiting process outlive its descriptor table briefly: an incomplete
        scan is repeated.
        """
        for _ in range(_ATTEMPTS):
            counts = self._watches_by_instance()
            live = self._live_instances()
            if live <= counts.keys():
                self._watch_count = sum(counts.values()) + len(live)
                return
            time.sleep(_PAUSE_SECONDS)

    def _live_instances(self) -> set[int]:
        """The numbers of all referenced instances; closes groups without one."""
        numbers: set[int] = set()
        for group in list(self._groups):
            if live := group.live_instances():
                numbers |= live
            else:
                self._groups.remove(group)
                group.close()
        return numbers

    def _watches_by_instance(self) -> dict[int, int]:
        """The number of watches of each open instance of the tree, by instance number."""
        counts: dict[int, int] = {}
        members = [row.procfs_id for row in tree.descendants(tree.scan(), [os.getpid()])]
        for path, target in disk_usage.descriptors(members):
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
    """Instances that the reaper identifies by number."""

    def __init__(self) -> None:
        self.size = 0
        self._pipe = os.pipe()
        self._epoll = select.epoll()
        row = os.fstat(self._pipe[0])
        device = os.major(row.st_dev) << 20 | os.minor(row.st_dev)
        self.marker = [b"ino:%x" % row.st_ino, b"sdev:%x" % device]  # in the form of fdinfo

    def close(self) -> None:
        """Of a group without instances."""
        self._epoll.close()
        for end in self._pipe:
            os.close(end)

    def add(self, instance: int, number: int) -> None:
        """Raises OSError."""
        _add_watch(instance, self._pipe[0], number)
        _add_watch(self._epoll.fileno(), instance, number)
        self.size += 1

    def live_instances(self) -> set[int]:
        """As in `EpollHandler`."""
        return {
            int(row[5], 16) for row in _read_watches(f"/proc/self/fdinfo/{self._epoll.fileno()}")
        }


def _add_watch(instance: int, target: int, number: int) -> None:
    """A watch without events."""
    if _libc.epoll_ctl(instance, _ADD, target, _EVENT.pack(0, number)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _read_watches(path: str) -> Iterator[list[bytes]]:
    """`tfd: 4 events: 0 data: 1 pos:0 ino:10ca84d sdev:f`, split into words (proc(5), fdinfo)."""
    with open(path, "rb", buffering=1 << 20) as stream:  # noqa: PTH123 - few imports
        for line in stream:
            if line.startswith(b"tfd:"):
                yield line.split()
