"""inotify_init1(2): events that nobody reads wait in the kernel, in memory of no process, so each instance counts as what it
holds at most. The reaper makes it in the agent's place.

What is kept is an upper bound: each answer adds, and no end is seen. Only where that bound meets the most are the
descriptors of the tree looked at.
"""

import ctypes
import errno
import os
from typing import Final

from agentbox.sandbox import tree, usage
from agentbox.sandbox.answers.denials import Denied
from agentbox.sandbox.answers.listener import Listener, Notice

INSTANCE: Final = (
    8 << 20
)  # bytes: 16,384 events (fs.inotify.max_queued_events) of 512 bytes, which one with a long name has
LEAST: Final = 2  # instances, however little memory the agent has
_SHARE: Final = 4
_TARGET: Final = "anon_inode:inotify"  # proc(5), of /proc/<pid>/fd
_libc = ctypes.CDLL(None, use_errno=True)


class Watching:
    """Of the tree below the calling process, of `memory` bytes; 0 is no limit."""

    def __init__(self, listener: Listener, memory: int) -> None:
        self._listener, self._held = listener, 0
        self._most = max(LEAST, memory // _SHARE // INSTANCE) if memory else 0

    def make(self, notice: Notice) -> None:
        """Raises Denied (EMFILE) at the limit, and OSError."""
        flags = notice.low(0) if notice.call == "inotify_init1" else 0
        if flags & ~(os.O_NONBLOCK | os.O_CLOEXEC):
            raise OSError(errno.EINVAL, "flags that no instance has")
        if self._most and self._held >= self._most:
            self._held = min(self._held, _there())
            if self._held >= self._most:
                raise Denied(errno.EMFILE, "inotify", f"instances at the limit of {self._most}")
        made = _libc.inotify_init1((flags & os.O_NONBLOCK) | os.O_CLOEXEC)
        if made < 0:
            raise OSError(ctypes.get_errno(), "no instance")
        try:
            self._listener.give(notice, made, cloexec=bool(flags & os.O_CLOEXEC))
        finally:
            os.close(made)
        self._held += 1


def _there() -> int:
    """How many the tree has open; more than any limit while descriptors of it that may be such are shown to nobody, or wait
    in sockets."""
    members = tree.descendants(tree.scan(), [os.getpid()])
    found = usage.descriptors(row.shown for row in members)
    if any(map(tree.hides, members)) or any(
        usage.carries(path) for path, target in found if target.startswith("socket:")
    ):
        return 1 << 30
    return sum(target == _TARGET for _, target in found)
