"""fork(2), vfork(2) and clone(2): counted, and refused at the limit. The kernel makes the process itself, since the flags
are registers and cannot change any more.

What is kept is an upper bound: each answer adds one, and no end is seen. Only where that bound meets the limit is the tree
counted anew, so an answer far from it reads nothing.
"""

import errno
import os
import time
from typing import Final

from agentbox.policy.limits.reserve import THREADS_A_PROCESS
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor.box_tasks import BoxShare
from agentbox.sandbox.seccomp.agent_filter import FILES, THREAD
from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.listener import Listener, Notice

_NAMESPACES: Final = 0x7E020000  # the CLONE_NEW* flags
_LOOKS: Final = 8
_PAUSE_SECONDS: Final = 0.001
_PAST_THE_CALL: Final = "SZXTt"  # states in which a thread is not inside of clone: there it runs, or waits in D


class Forks:
    """Of the tree below the calling process, of at most `most` processes; 0 is no limit. `share`: of what all agents of the
    box may have together."""

    def __init__(self, listener: Listener, most: int, share: BoxShare | None = None) -> None:
        self._listener, self._most, self._share = listener, most, share
        self._processes = self._threads = 1
        self._under_way: dict[int, None] = {}  # threads that were let go on and may not have forked yet

    def fork(self, notice: Notice) -> None:
        """Goes on, or raises Denied (EAGAIN) at the limit."""
        flags = notice.low(0) if notice.call == "clone" else 0
        if flags & _NAMESPACES:
            raise Denied(errno.EPERM, "clone", f"namespaces {flags & _NAMESPACES:#x}")
        thread = bool(flags & THREAD)
        if thread and not flags & FILES:
            raise Denied(errno.EPERM, "clone", "a thread with descriptors of its own")
        self._under_way.pop(notice.pid, None)  # it asks again, so it is done with what it asked before
        if self._most and not self._fits(thread) and not self._fits_counted(thread):
            raise Denied(errno.EAGAIN, "pids", f"{'threads' if thread else 'processes'} at the limit of {self._most}")
        if not self._box_has_room():
            raise Denied(
                errno.EAGAIN, "box_tasks", "the agents of this box have all processes and threads that it can spare"
            )
        self._under_way[notice.pid] = None
        self._processes += not thread
        self._threads += 1
        self._listener.go_on(notice)

    def _box_has_room(self) -> bool:
        """Whether one more leaves the box its reserve. The reaper of the tree counts too."""
        if self._share is None or self._share.takes(self._threads + 2):
            return True
        doubtful = self._doubtful()
        rows = _mine()
        self._processes, self._threads = len(rows) + doubtful, sum(row.threads for row in rows) + doubtful
        return self._share.counted(self._threads + 2)

    def _fits(self, thread: bool) -> bool:
        """Whether one more keeps to both limits."""
        return self._threads < THREADS_A_PROCESS * self._most and (thread or self._processes < self._most)

    def _fits_counted(self, thread: bool) -> bool:
        """As `_fits`, after a count. Who was let go on and has not forked yet counts as if it had: a look that finds too
        many only with those is repeated for a few milliseconds, and then is a no."""
        for _ in range(_LOOKS):
            doubtful = self._doubtful()  # before the scan: who forks between the two is counted twice, not never
            rows = _mine()
            self._processes, self._threads = len(rows), sum(row.threads for row in rows)
            if not self._fits(thread):
                break
            self._processes += doubtful
            self._threads += doubtful
            if self._fits(thread):
                return True
            time.sleep(_PAUSE_SECONDS)
        return False

    def _doubtful(self) -> int:
        for one in list(self._under_way):
            row = tree.look_at_thread(one)
            if row is None or row.state in _PAST_THE_CALL:
                del self._under_way[one]
        return len(self._under_way)


def _mine() -> list[tree.Process]:
    """All below this process. Zombies count, as they do for the kernel, but those that this process is about to bury."""
    me = os.getpid()
    return [row for row in tree.descendants(tree.scan(), [me]) if row.state not in "ZX" or row.parent != me]
