"""The kernel's queue of notifications: man 2 seccomp_unotify. Structures and numbers:
linux/seccomp.h.
"""

import errno
import fcntl
import os
import signal
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final, NamedTuple

from agentbox.sandbox.seccomp.syscalls import CALLS, AuditArchitecture

_NOTIFICATION: Final = struct.Struct(
    "=QIIiIQ6Q"
)  # struct seccomp_notif: id, pid, flags; nr, arch, ip, arguments
_REPLY: Final = struct.Struct("=QqiI")  # struct seccomp_notif_resp: id, value, error, flags
_ADD_FD: Final = struct.Struct(
    "=QIIII"
)  # struct seccomp_notif_addfd: id, flags, source, target, flags of the target
_RECEIVE, _SEND, _VALID, _ADD, _SET_FLAGS = (
    0xC0502100,
    0xC0182101,
    0x40082102,
    0x40182103,
    0x40082104,
)
_CONTINUE: Final = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_AND_SEND: Final = 2  # SECCOMP_ADDFD_FLAG_SEND
_SYNC_WAKE_UP: Final = (
    1  # SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, since 6.6: both sides often share one CPU
)

# The signals that a reaper has handlers for.
_HANDLED: Final = (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM)

Word = int


@cache
def syscall_names(machine: AuditArchitecture) -> Mapping[int, str]:
    """The calls in the filter, by number."""
    return {number: call for call in CALLS if (number := machine.number(call)) is not None}


class Notification(NamedTuple):
    """A thread that waits in a call. `arguments` are the registers, which cannot change
    any more. `filter` is that of `NotificationFd.add`.
    """

    id: int
    pid: int  # of the thread
    call: str
    arguments: tuple[Word, ...]
    filter: int = 0

    def int_argument(self, index: int) -> int:
        """An argument that the kernel reads as an int."""
        word = self.arguments[index] & 0xFFFFFFFF
        return word - (1 << 32) if word >> 31 else word


class NotificationFd:
    """The supervisor's end of the filters of one tree: each program of it that was started by the
    reaper has its own. Replies to threads that have exited are ignored.
    """

    def __init__(self, machine: AuditArchitecture) -> None:
        self._names = syscall_names(machine)
        self._fds: dict[int, int] = {}  # by number of the filter
        self._filters: dict[int, int] = {}  # by descriptor
        self._last_filter = 0

    def add(self, fd: int) -> int:
        """Takes the descriptor of one more filter, which is readable when a thread waits. Returns
        the number of the filter; numbers are not reused.
        """
        with suppress(OSError):
            fcntl.ioctl(fd, _SET_FLAGS, _SYNC_WAKE_UP)
        self._last_filter += 1
        self._fds[self._last_filter], self._filters[fd] = fd, self._last_filter
        return self._last_filter

    def remove(self, fd: int) -> None:
        """Closes the descriptor of a filter that no process has any more."""
        del self._fds[self._filters.pop(fd)]
        os.close(fd)

    def receive(self, fd: int) -> Notification | None:
        """The next notification of a filter; None if its thread has exited."""
        raw = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(fd, _RECEIVE, raw)
        except (FileNotFoundError, InterruptedError):
            return None
        notification_id, pid, _, call, _, _, *arguments = _NOTIFICATION.unpack(raw)
        return Notification(
            notification_id,
            pid,
            self._names.get(call, str(call)),
            tuple(arguments),
            self._filters[fd],
        )

    def is_waiting(self, notification: Notification) -> bool:
        """Whether the thread still waits: then what was read by its id belongs to it."""
        with suppress(FileNotFoundError):
            self._ioctl(notification, _VALID, struct.pack("=Q", notification.id))
            return True
        return False

    def reply(self, notification: Notification, value: int = 0, error: int = 0) -> None:
        """The call returns `value`, or fails with that errno."""
        self._send(notification, _REPLY.pack(notification.id, 0 if error else value, -error, 0))

    def continue_syscall(self, notification: Notification) -> None:
        """The kernel runs the call. Only for decisions based on registers: another thread can
        change memory.
        """
        self._send(notification, _REPLY.pack(notification.id, 0, 0, _CONTINUE))

    def send_fd(self, notification: Notification, fd: int, *, cloexec: bool) -> int | None:
        """Installs a descriptor in the thread, whose call returns its number; None if the thread
        has exited. Raises OSError (EMFILE).
        """
        with suppress(FileNotFoundError), _uninterrupted():
            return self._ioctl(
                notification,
                _ADD,
                _ADD_FD.pack(notification.id, _AND_SEND, fd, 0, os.O_CLOEXEC if cloexec else 0),
            )
        return None

    def add_fd(self, notification: Notification, fd: int, *, cloexec: bool) -> int:
        """Like `send_fd`, but the call keeps waiting; returns the number. Raises OSError."""
        with _uninterrupted():
            return self._ioctl(
                notification,
                _ADD,
                _ADD_FD.pack(notification.id, 0, fd, 0, os.O_CLOEXEC if cloexec else 0),
            )

    def read_memory(self, notification: Notification, address: Word, size: int) -> bytes:
        """A copy of its memory, shorter at the end of a mapping. Raises OSError (EFAULT if there is
        none).
        """
        try:
            memory = os.open(f"/proc/{notification.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise PermissionError(errno.EPERM, "cannot read the memory of the thread") from error
        try:
            if not self.is_waiting(notification):  # the thread id may have been reused
                raise ProcessLookupError(errno.ESRCH, "the thread has exited")
            data = os.pread(memory, size, address)
        except (OSError, OverflowError) as error:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT)) from error
        finally:
            os.close(memory)
        if not data:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return data

    def read_exact(self, notification: Notification, address: Word, size: int) -> bytes:
        """Like `read_memory`, never shorter. Raises OSError (EFAULT if the mapping ends before)."""
        data = self.read_memory(notification, address, size)
        if len(data) < size:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return data

    def write_memory(self, notification: Notification, address: Word, data: bytes) -> None:
        """Writes to its memory. Raises OSError."""
        memory = os.open(f"/proc/{notification.pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            if self.is_waiting(notification):
                os.pwrite(memory, data, address)
        except (OSError, OverflowError) as error:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT)) from error
        finally:
            os.close(memory)

    def _send(self, notification: Notification, packed: bytes) -> None:
        with suppress(FileNotFoundError):
            self._ioctl(notification, _SEND, packed)

    def _ioctl(self, notification: Notification, request: int, packed: bytes) -> int:
        """Raises FileNotFoundError if the thread no longer waits."""
        fd = self._fds.get(notification.filter)
        if fd is None:
            raise FileNotFoundError(errno.ENOENT, "no process with that filter is left")
        while True:
            with suppress(InterruptedError):
                returned: int = fcntl.ioctl(fd, request, bytearray(packed))
                return returned


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Without signals: one that ends the wait in SECCOMP_IOCTL_NOTIF_ADDFD takes the descriptor
    back, while the call has been replied to and returns 0 (kernel/seccomp.c).
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
