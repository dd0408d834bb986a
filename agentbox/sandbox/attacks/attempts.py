"""Trying something and telling what came of it; system calls by name."""

import ctypes
import errno
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress

from agentbox.sandbox.attacks.line import PASSED, Absent
from agentbox.sandbox.seccomp.syscalls import MACHINES

_libc = ctypes.CDLL(None, use_errno=True)


def tried(what: Callable[..., object], *words: object) -> str:
    """`passed`, or the name of the errno that it got."""
    try:
        what(*words)
    except OSError as error:
        return name_of(error.errno)
    return PASSED


def worst(replies: Iterable[str]) -> str:
    """Of several tries that must all be stopped: one that passed if any did, else the first. Absent without any."""
    found = list(replies)
    if not found:
        raise Absent("nothing to try it on")
    return next((reply for reply in found if reply.startswith(PASSED)), found[0])


def each(what: Callable[[str], object], targets: Iterable[str]) -> str:
    """The worst reply of a try on each target that is there. Names can be looked up whatever holds the agent."""
    return worst([tried(what, target) for target in targets if os.path.lexists(target)])


def name_of(number: int | None) -> str:
    """`EACCES`."""
    return errno.errorcode.get(number or 0, f"errno {number}")


def call(name: str, *arguments: int) -> str:
    """A system call with these words. Raises Absent on a machine that has no such call."""
    machine = MACHINES.get(os.uname().machine)
    number = machine.number(name) if machine else None
    if number is None:
        raise Absent(f"no call {name} on this machine")
    return by_number(number, *arguments)


def value(name: str, *arguments: int) -> int:
    """What a call returns, -1 where it fails. Raises Absent as `call` does."""
    machine = MACHINES.get(os.uname().machine)
    number = machine.number(name) if machine else None
    if number is None:
        raise Absent(f"no call {name} on this machine")
    found: int = _libc.syscall(ctypes.c_long(number), *(ctypes.c_long(word) for word in arguments))
    return found


def by_number(number: int, *arguments: int) -> str:
    """The same by its number."""
    ctypes.set_errno(0)
    found = _libc.syscall(ctypes.c_long(number), *(ctypes.c_long(word) for word in arguments))
    return name_of(ctypes.get_errno()) if found < 0 else PASSED


def connect(family: int, kind: int, address: object, protocol: int = 0) -> None:
    """Makes a socket, connects it, lets go. Raises OSError."""
    with socket.socket(family, kind, protocol) as one:
        one.settimeout(3)
        one.connect(address)  # type: ignore[arg-type]


def opened(path: str, flags: int = os.O_RDONLY) -> None:
    """Opens and closes. Raises OSError."""
    os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))


def made(path: str) -> None:
    """Makes a file that is not there, and takes it away again. Raises OSError."""
    opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with suppress(OSError):
        os.unlink(path)
