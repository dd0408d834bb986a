"""fork(2), vfork(2) and clone(2): counted, and refused at the limit. The kernel makes the process itself, since the flags
are registers and cannot change any more.

What is kept is an upper bound: each answer adds one, and no end is seen. Only where that bound meets the limit is the tree
counted anew, so an answer far from it reads nothing.
"""

import errno
import os
import time
from typing import Final

from agentbox.policy.limits.reserve import THREADS_PER_PROCESS
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor.box_tasks import BoxShare
from agentbox.sandbox.seccomp.agent_filter import CLONE_FILES, CLONE_THREAD
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

_NAMESPACES: Final = 0x7E020000  # the CLONE_NEW* flags
_ATTEMPTS: Final = 8
_PAUSE_SECONDS: Final = 0.001
_OUTSIDE_CALL_STATES: Final = (
    "SZXTt"  # states in which a thread is not inside of clone: there it runs, or waits in D
)


class ForkHandler:
    """Of the tree below the calling process, of at most `most` processes; 0 is no limit. `share`: of what all agents of the
    box may have together."""

    def __init__(
        self, notify_fd: NotificationFd, maximum: int, box_share: BoxShare | None = None
    ) -> None:
        self._notify_fd, self._maximum, self._box_share = notify_fd, maximum, box_share
        self._processes = self._threads = 1
        self._in_flight: dict[
            int, None
        ] = {}  # threads that were let go on and may not have forked yet

    def fork(self, notification: Notification) -> None:
        """Goes on, or raises Denied (EAGAIN) at the limit."""
        flags = notification.int_argument(0) if notification.call == "clone" else 0
        if flags & _NAMESPACES:
            raise DeniedCall(errno.EPERM, "clone", f"namespaces {flags & _NAMESPACES:#x}")
        thread = bool(flags & CLONE_THREAD)
        if thread and not flags & CLONE_FILES:
            raise DeniedCall(errno.EPERM, "clone", "a thread with descriptors of its own")
        self._in_flight.pop(
            notification.pid, None
        )  # it asks again, so it is done with what it asked before
        if (
            self._maximum
            and not self._is_below_limit(thread)
            and not self._recount_below_limit(thread)
        ):
            raise DeniedCall(
                errno.EAGAIN,
                "pids",
                f"{'threads' if thread else 'processes'} at the limit of {self._maximum}",
            )
        if not self._box_has_capacity():
            raise DeniedCall(
                errno.EAGAIN,
                "box_tasks",
                "the agents of this box have all processes and threads that it can spare",
            )
        self._in_flight[notification.pid] = None
        self._processes += not thread
        self._threads += 1
        self._notify_fd.continue_syscall(notification)

    def _box_has_capacity(self) -> bool:
        """Whether one more leaves the box its reserve. The reaper of the tree counts too."""
        if self._box_share is None or self._box_share.reserve(self._threads + 2):
            return True
        in_flight = self._count_in_flight()
        rows = _descendants()
        self._processes, self._threads = (
            len(rows) + in_flight,
            sum(row.threads for row in rows) + in_flight,
        )
        return self._box_share.reserve_counted(self._threads + 2)

    def _is_below_limit(self, thread: bool) -> bool:
        """Whether one more keeps to both limits."""
        return self._threads < THREADS_PER_PROCESS * self._maximum and (
            thread or self._processes < self._maximum
        )

    def _recount_below_limit(self, thread: bool) -> bool:
        """As `_fits`, after a count. Who was let go on and has not forked yet counts as if it had: a look that finds too
        many only with those is repeated for a few milliseconds, and then is a no."""
        for _ in range(_ATTEMPTS):
            in_flight = (
                self._count_in_flight()
            )  # before the scan: who forks between the two is counted twice, not never
            rows = _descendants()
            self._processes, self._threads = len(rows), sum(row.threads for row in rows)
            if not self._is_below_limit(thread):
                break
            self._processes += in_flight
            self._threads += in_flight
            if self._is_below_limit(thread):
                return True
            time.sleep(_PAUSE_SECONDS)
        return False

    def _count_in_flight(self) -> int:
        for thread in list(self._in_flight):
            row = tree.read_thread(thread)
            if row is None or row.state in _OUTSIDE_CALL_STATES:
                del self._in_flight[thread]
        return len(self._in_flight)


def _descendants() -> list[tree.Process]:
    """All below this process. Zombies count, as they do for the kernel, but those that this process is about to bury."""
    own_pid = os.getpid()
    return [
        row
        for row in tree.descendants(tree.scan(), [own_pid])
        if row.state not in "ZX" or row.parent != own_pid
    ]
