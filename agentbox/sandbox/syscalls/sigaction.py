"""rt_sigaction(2) for SIGCHLD: adds SA_RESTART to the handlers of simple shells.

A signal that arrives while a call waits, before the reaper has read it, ends the call with EINTR
unless the handler has SA_RESTART. The handlers of dash and busybox lack it; their pipelines fork
while the first of their children exits, and give up when a fork fails (glibc before 2.41 blocks no
signals there). Both wait for children by calls that are never restarted, so nothing else changes
for them. Handlers of all other programs are unchanged.
"""

import os
import struct
from contextlib import suppress
from typing import Final

from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

SHELLS: Final = ("dash", "busybox")
_HANDLER: Final = struct.Struct("=QQ")  # the start of the kernel's struct sigaction: handler, flags
_NO_HANDLER: Final = (0, 1)  # SIG_DFL, SIG_IGN
_RESTART: Final = 0x10000000  # SA_RESTART, asm-generic/signal-defs.h


class SigactionHandler:
    """Always continues the call: this is no security check."""

    def __init__(self, notify_fd: NotificationFd) -> None:
        self._notify_fd = notify_fd

    def install(self, notification: Notification) -> None:
        """The kernel reads the handler afterwards."""
        with suppress(OSError):
            # Twice as fast as with pathlib.
            executable = os.readlink(f"/proc/{notification.pid}/exe")  # noqa: PTH115
            if os.path.basename(executable) in SHELLS:  # noqa: PTH119
                self._add_restart_flag(notification)
        self._notify_fd.continue_syscall(notification)

    def _add_restart_flag(self, notification: Notification) -> None:
        handler, flags = _HANDLER.unpack(
            self._notify_fd.read_exact(notification, notification.arguments[1], _HANDLER.size)
        )
        if handler not in _NO_HANDLER and not flags & _RESTART:
            self._notify_fd.write_memory(
                notification, notification.arguments[1], _HANDLER.pack(handler, flags | _RESTART)
            )
