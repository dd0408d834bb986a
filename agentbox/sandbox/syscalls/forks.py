"""fork(2), vfork(2) and clone(2): counted, and refused at the limit. The kernel performs the call
itself, since the flags are in registers and cannot change any more.

The stored values are upper bounds: each call adds one, and exits are not seen. The tree is counted
only when a bound reaches the limit, so calls far from it read nothing.
"""

import errno
import os
import time
from typing import Final

from agentbox.policy.limits.reserve import THREADS_PER_PROCESS
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor.box_tasks import BoxTaskReservation
from agentbox.sandbox.seccomp.agent_filter import CLONE_FILES, CLONE_THREAD
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

_NAMESPACES: Final = 0x7E020000  # the CLONE_NEW* flags
_ATTEMPTS: Final = 8
_PAUSE_SECONDS: Final = 0.001
_OUTSIDE_CALL_STATES: Final = (
    "SZXTt"  # states of a thread outside of clone: inside it runs, or waits in D
)


class ForkHandler:
    """The tree below the calling process, with at most `maximum` processes; 0 means no limit.
    `box_share`: the share in the limit of all agents together.
    """

    def __init__(
        self, notify_fd: NotificationFd, maximum: int, box_share: BoxTaskReservation | None = None
    ) -> None:
        self._notify_fd, self._maximum, self._box_share = notify_fd, maximum, box_share
        self._processes = self._threads = 1
        self.uncounted = 0  # processes of the tree that the reaper keeps ready for a program
        self._in_flight: dict[
            int, None
        ] = {}  # threads whose call was continued and that may not have forked yet

    def fork(self, notification: Notification) -> None:
        """Continues the call, or raises DeniedCall (EAGAIN) at the limit."""
        flags = notification.int_argument(0) if notification.call == "clone" else 0
        if flags & _NAMESPACES:
            raise DeniedCall(errno.EPERM, "clone", f"namespaces {flags & _NAMESPACES:#x}")
        thread = bool(flags & CLONE_THREAD)
        if thread and not flags & CLONE_FILES:
            raise DeniedCall(errno.EPERM, "clone", "a thread with its own descriptor table")
        self._in_flight.pop(notification.pid, None)  # a new call, so the previous one is finished
        self._count_one(thread=thread)
        self._in_flight[notification.pid] = None
        self._notify_fd.continue_syscall(notification)

    def start_program(self) -> None:
        """Counts a process that the reaper itself is about to start. Raises DeniedCall (EAGAIN) at
        the limit.
        """
        self._count_one(thread=False)

    def _count_one(self, *, thread: bool) -> None:
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
                "all agents together are at the limit of processes and threads",
            )
        self._processes += not thread
        self._threads += 1

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
        """Whether one more is within both limits."""
        return self._threads < THREADS_PER_PROCESS * self._maximum and (
            thread or self._processes < self._maximum
        )

    def _recount_below_limit(self, thread: bool) -> bool:
        """Like `_is_below_limit`, after a count. Calls that were continued and have not forked yet
        count as forks: if only they exceed the limit, the count is repeated for a few milliseconds.
        """
        for _ in range(_ATTEMPTS):
            in_flight = (
                self._count_in_flight()
            )  # before the scan: a fork between the two counts twice, not never
            rows = _descendants()
            self._processes = len(rows) - self.uncounted
            self._threads = sum(row.threads for row in rows) - self.uncounted
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
    """All processes below this one. Zombies count, as for the kernel, except those that this
    process will reap.
    """
    self_pid = os.getpid()
    return [
        row
        for row in tree.descendants(tree.scan(), [self_pid])
        if row.state not in "ZX" or row.parent != self_pid
    ]
