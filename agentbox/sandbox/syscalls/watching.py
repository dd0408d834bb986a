"""inotify(7). Events that nobody reads wait in the kernel, in memory of no process, so each instance counts as what it holds
at most. And what is watched tells the names in it: Landlock has no hook for that, so the right to read it is asked for here.
The reaper makes instances, and adds watches, in the agent's place.

What is kept of the number is an upper bound: each answer adds. Only where that bound meets the most are the descriptors of
the tree looked at.
"""

import ctypes
import errno
import os
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import usage
from agentbox.sandbox.seccomp import agent_filter
from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.instances import TARGET, Instances, under_way
from agentbox.sandbox.syscalls.listener import Listener, Notice
from agentbox.sandbox.syscalls.paths import HERE, NOFOLLOW, Paths, Readable, place_of

INSTANCE: Final = (
    8 << 20
)  # bytes: 16,384 events (fs.inotify.max_queued_events) of 512 bytes, which one with a long name has
LEAST: Final = 2  # instances, however little memory the agent has
_SHARE: Final = 4
_DONT_FOLLOW: Final = 0x02000000  # IN_DONT_FOLLOW, linux/inotify.h
_libc = ctypes.CDLL(None, use_errno=True)


class Watching:
    """Of the tree below the calling process, of `memory` bytes; 0 is no limit."""

    def __init__(self, listener: Listener, memory: int, instances: Instances, paths: Paths, readable: Readable) -> None:
        self._listener, self._held = listener, 0
        self._instances, self._paths, self._readable = instances, paths, readable
        self._most = max(LEAST, memory // _SHARE // INSTANCE) if memory else 0

    def make(self, notice: Notice) -> None:
        """Raises Denied (EMFILE) at the limit, and OSError."""
        flags = notice.low(0) if notice.call == "inotify_init1" else 0
        if flags & ~(os.O_NONBLOCK | os.O_CLOEXEC):
            raise OSError(errno.EINVAL, "flags that no instance has")
        if self._most and self._held >= self._most:
            self._instances.tidy()
            self._held = min(self._held, max(_there(), len(self._instances)))
            if self._held >= self._most:
                raise Denied(errno.EMFILE, "inotify", f"instances at the limit of {self._most}")
        process = tree.process_of(notice.pid)
        made, number = self._made(flags & os.O_NONBLOCK), None
        try:
            number = self._listener.give(notice, made, cloexec=bool(flags & os.O_CLOEXEC))
        finally:
            if number is None:
                os.close(made)
        if number is not None:
            self._held += 1
            self._instances.keep(made, process, number)

    def _made(self, flags: int) -> int:
        """One of the kernel's, which has so many for all of a user."""
        for _ in range(2):
            made: int = _libc.inotify_init1(flags | os.O_CLOEXEC)
            if made >= 0:
                return made
            self._instances.tidy()
        raise OSError(ctypes.get_errno(), "no instance")

    def add(self, notice: Notice) -> int:
        """inotify_add_watch(2): of a folder that the agent may list, or a file that it may read. Raises Denied, and OSError."""
        try:
            instance = self._instances.find(notice.pid, notice.low(0))
        except FileNotFoundError as error:
            raise OSError(errno.EBADF, "no such descriptor") from error
        if not self._listener.waits(notice):  # the number may be another's by now
            raise ProcessLookupError(errno.ESRCH, "it is gone")
        if instance is None:
            raise OSError(errno.EINVAL, "no instance")
        mask = notice.low(2)
        with self._paths.named(notice, HERE, notice.arguments[1], NOFOLLOW if mask & _DONT_FOLLOW else 0) as found:
            if not self._readable.holds(found):
                shown = os.fsdecode(place_of(found)).encode("utf-8", "replace").decode()
                raise Denied(errno.EACCES, agent_filter.ADD_WATCH, shown)
            # The link in /proc must be followed; what it leads to may be a link itself, and is not.
            watch: int = _libc.inotify_add_watch(instance, f"/proc/self/fd/{found}".encode(), mask & ~_DONT_FOLLOW)
            if watch < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
        return watch


def _there() -> int:
    """How many the tree has open; more than any limit while descriptors of it that may be such are shown to nobody, or wait
    in sockets."""
    members = tree.descendants(tree.scan(), [os.getpid()])
    found = usage.descriptors(row.shown for row in members)
    return 1 << 30 if under_way(members, found) else sum(target == TARGET for _, target in found)
