"""sched_setscheduler(2) and sched_setparam(2) for a thread id: succeed, without effect, if nothing
would change.

Some libraries set the values that a thread already has, and exit if that fails (libzmq does, and
with it every notebook kernel). Changes, and calls for another process, are refused.
"""

import os
import struct
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

_PRIORITY: Final = struct.Struct("=i")  # struct sched_param, linux/sched/types.h
_RESET_ON_FORK: Final = 0x40000000  # SCHED_RESET_ON_FORK, linux/sched.h
_REFUSED: Final = 1  # EPERM


class SchedulerHandler:
    """Both calls return 0 or raise DeniedCall."""

    def __init__(self, notify_fd: NotificationFd) -> None:
        self._notify_fd = notify_fd

    def policy(self, notification: Notification) -> int:
        """The policy is the second argument, a pointer to the priority the third."""
        return self._check_unchanged(notification, notification.int_argument(1), 2)

    def priority(self, notification: Notification) -> int:
        """A pointer to the priority is the second argument."""
        return self._check_unchanged(notification, None, 1)

    def _check_unchanged(self, notification: Notification, policy: int | None, index: int) -> int:
        thread = notification.int_argument(0)
        requested = _PRIORITY.unpack(
            self._notify_fd.read_exact(notification, notification.arguments[index], _PRIORITY.size)
        )[0]
        try:
            current = (
                os.sched_getscheduler(thread) & ~_RESET_ON_FORK,
                os.sched_getparam(thread).sched_priority,
            )
            same_process = tree.thread_group_id(thread) == tree.thread_group_id(notification.pid)
        except OSError as error:
            raise DeniedCall(_REFUSED, notification.call) from error
        if not same_process or current != (current[0] if policy is None else policy, requested):
            raise DeniedCall(_REFUSED, notification.call)
        return 0
