"""Runs attempts and reports their outcome; system calls by name."""

import ctypes
import errno
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress

from agentbox.sandbox.attacks.case import PASSED, TargetMissing
from agentbox.sandbox.seccomp.syscalls import MACHINES

_libc = ctypes.CDLL(None, use_errno=True)


def run_attempt(action: Callable[..., object], *arguments: object) -> str:
    """`passed`, or the name of the errno."""
    try:
        action(*arguments)
    except OSError as error:
        return errno_name(error.errno)
    return PASSED


def worst(replies: Iterable[str]) -> str:
    """The result of several attempts that must all be stopped: one that passed, if any, else the
    first. Raises TargetMissing if there are none.
    """
    results = list(replies)
    if not results:
        raise TargetMissing("no target")
    return next((reply for reply in results if reply.startswith(PASSED)), results[0])


def run_each(action: Callable[[str], object], targets: Iterable[str]) -> str:
    """The worst reply of an attempt on each existing target. Names can be looked up under any
    confinement.
    """
    return worst([run_attempt(action, target) for target in targets if os.path.lexists(target)])


def errno_name(number: int | None) -> str:
    """For example `EACCES`."""
    return errno.errorcode.get(number or 0, f"errno {number}")


def syscall(name: str, *arguments: int) -> str:
    """A system call with these arguments. Raises TargetMissing on a machine without the call."""
    machine = MACHINES.get(os.uname().machine)
    number = machine.number(name) if machine else None
    if number is None:
        raise TargetMissing(f"no call {name} on this machine")
    return syscall_by_number(number, *arguments)


def syscall_result(name: str, *arguments: int) -> int:
    """The return value of a call, -1 on failure. Raises TargetMissing like `syscall`."""
    machine = MACHINES.get(os.uname().machine)
    number = machine.number(name) if machine else None
    if number is None:
        raise TargetMissing(f"no call {name} on this machine")
    result: int = _libc.syscall(
        ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments)
    )
    return result


def syscall_by_number(number: int, *arguments: int) -> str:
    """The same by number."""
    ctypes.set_errno(0)
    result = _libc.syscall(
        ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments)
    )
    return errno_name(ctypes.get_errno()) if result < 0 else PASSED


def connect(family: int, kind: int, address: object, protocol: int = 0) -> None:
    """Connects a new socket and closes it. Raises OSError."""
    with socket.socket(family, kind, protocol) as sock:
        sock.settimeout(3)
        sock.connect(address)  # type: ignore[arg-type]


def open_and_close(path: str, flags: int = os.O_RDONLY) -> None:
    """Opens and closes. Raises OSError."""
    os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))


def create_file(path: str) -> None:
    """Creates a new file and removes it. Raises OSError."""
    open_and_close(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with suppress(OSError):
        os.unlink(path)
