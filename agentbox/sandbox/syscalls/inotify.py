"""inotify(7): limits instances, and checks the right to read what is watched.

Unread events wait in kernel memory that belongs to no process, so each instance counts with its
maximum. Watches reveal names: Landlock has no hook for them, so the right to read is checked here.
The reaper creates instances and adds watches for the agent.

The stored number is an upper bound: each call adds to it. The descriptors of the tree are counted
only when the bound reaches the limit.
"""

import ctypes
import errno
import os
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import disk_usage
from agentbox.sandbox.seccomp import call_sets
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.inotify_instances import (
    INOTIFY_TARGET,
    InotifyInstances,
    may_be_in_flight,
)
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd
from agentbox.sandbox.syscalls.paths import (
    AT_FDCWD,
    AT_SYMLINK_NOFOLLOW,
    PathResolver,
    ReadablePaths,
    descriptor_path,
)

INSTANCE_BYTES: Final = (
    8 << 20
)  # bytes: 16,384 events (fs.inotify.max_queued_events) of 512 bytes, the size with a long name
MIN_INSTANCES: Final = 2  # instances, the minimum for any memory size
_SHARE: Final = 4
_DONT_FOLLOW: Final = 0x02000000  # IN_DONT_FOLLOW, linux/inotify.h
_libc = ctypes.CDLL(None, use_errno=True)


class InotifyHandler:
    """The tree below the calling process, with `memory` bytes; 0 means no limit."""

    def __init__(
        self,
        notify_fd: NotificationFd,
        memory: int,
        instances: InotifyInstances,
        paths: PathResolver,
        readable: ReadablePaths,
    ) -> None:
        self._notify_fd, self._instance_count = notify_fd, 0
        self._instances, self._paths, self._readable = instances, paths, readable
        self._maximum = max(MIN_INSTANCES, memory // _SHARE // INSTANCE_BYTES) if memory else 0

    def make(self, notification: Notification) -> None:
        """Raises DeniedCall (EMFILE) at the limit, and OSError."""
        flags = notification.int_argument(0) if notification.call == "inotify_init1" else 0
        if flags & ~(os.O_NONBLOCK | os.O_CLOEXEC):
            raise OSError(errno.EINVAL, "invalid flags")
        if self._maximum and self._instance_count >= self._maximum:
            self._instances.clean_up()
            self._instance_count = min(
                self._instance_count, max(_count_open(), len(self._instances))
            )
            if self._instance_count >= self._maximum:
                raise DeniedCall(
                    errno.EMFILE, "inotify", f"instances at the limit of {self._maximum}"
                )
        process = tree.thread_group_id(notification.pid)
        instance, number = self._create_instance(flags & os.O_NONBLOCK), None
        try:
            number = self._notify_fd.send_fd(
                notification, instance, cloexec=bool(flags & os.O_CLOEXEC)
            )
        finally:
            if number is None:
                os.close(instance)
        if number is not None:
            self._instance_count += 1
            self._instances.add(instance, process, number)

    def _create_instance(self, flags: int) -> int:
        """Creates an instance; the kernel limits them per user."""
        for _ in range(2):
            instance: int = _libc.inotify_init1(flags | os.O_CLOEXEC)
            if instance >= 0:
                return instance
            self._instances.clean_up()
        raise OSError(ctypes.get_errno(), "cannot create an instance")

    def add(self, notification: Notification) -> int:
        """inotify_add_watch(2): on a directory that the agent may list, or a file that it may read.
        Raises DeniedCall and OSError.
        """
        try:
            instance = self._instances.find(notification.pid, notification.int_argument(0))
        except FileNotFoundError as error:
            raise OSError(errno.EBADF, "no such descriptor") from error
        if not self._notify_fd.is_waiting(notification):  # the thread id may have been reused
            raise ProcessLookupError(errno.ESRCH, "the thread has exited")
        if instance is None:
            raise OSError(errno.EINVAL, "not an inotify instance")
        mask = notification.int_argument(2)
        with self._paths.open_path(
            notification,
            AT_FDCWD,
            notification.arguments[1],
            AT_SYMLINK_NOFOLLOW if mask & _DONT_FOLLOW else 0,
        ) as fd:
            if not self._readable.contains(fd):
                display_path = os.fsdecode(descriptor_path(fd)).encode("utf-8", "replace").decode()
                raise DeniedCall(errno.EACCES, call_sets.ADD_WATCH, display_path)
            # The link in /proc must be followed; its target may be a link too, and is not followed.
            watch: int = _libc.inotify_add_watch(
                instance, f"/proc/self/fd/{fd}".encode(), mask & ~_DONT_FOLLOW
            )
            if watch < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
        return watch


def _count_open() -> int:
    """The number of open instances of the tree; more than any limit if some may be unreadable or in
    flight in sockets.
    """
    members = tree.descendants(tree.scan(), [os.getpid()])
    descriptors = disk_usage.descriptors(row.procfs_id for row in members)
    return (
        1 << 30
        if may_be_in_flight(members, descriptors)
        else sum(target == INOTIFY_TARGET for _, target in descriptors)
    )
