"""Installs a seccomp filter in this process, and reports whether it has one (man 2 seccomp)."""

import ctypes
import errno
import os
import platform

from agentbox.core.linux.kernel import prctl
from agentbox.sandbox.seccomp.syscalls import MACHINES, AuditArchitecture

_PR_GET_SECCOMP = 21  # linux/prctl.h
_MODE_FILTER = 2  # SECCOMP_MODE_FILTER, linux/seccomp.h
_SET_FILTER = 1  # SECCOMP_SET_MODE_FILTER
NEW_LISTENER, _WAIT_KILLABLE = 8, 32  # SECCOMP_FILTER_FLAG_*

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def install(program: bytes, *, with_notify_fd: bool = True) -> int:
    """Irrevocably installs the filter for this process and its descendants; returns the
    notification descriptor, or 0 for a filter without notifications (`with_notify_fd` False).

    A call that is being answered is interrupted by a fatal signal only. Needs no_new_privs. Raises
    OSError.
    """
    buffer = ctypes.create_string_buffer(program, len(program))
    program_struct = _Program(len(program) // 8, ctypes.addressof(buffer))
    number = current_machine().number("seccomp") or -1
    flags = NEW_LISTENER | _WAIT_KILLABLE if with_notify_fd else 0
    notify_fd: int = _libc.syscall(
        ctypes.c_long(number),
        ctypes.c_long(_SET_FILTER),
        ctypes.c_long(flags),
        ctypes.byref(program_struct),
    )
    if notify_fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"seccomp: {os.strerror(code)}")
    return notify_fd


def is_installed() -> bool:
    """Whether the kernel reports a filter for this process. The box's own filter counts too."""
    return prctl(_PR_GET_SECCOMP) == _MODE_FILTER


def current_machine() -> AuditArchitecture:
    """Raises OSError on an architecture without a filter."""
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, f"no system call filter for {platform.machine()}")
    return machine
