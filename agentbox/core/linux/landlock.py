"""Landlock by its three system calls: which paths, TCP ports and strangers a process and its descendants still reach.

Numbers: linux/landlock.h; the calls have one number on every architecture. A kernel that knows less (its ABI) is given
less; `sandbox/confinement.py` says what then does not hold. man 7 landlock.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from agentbox.core.linux.opening import UNBOUNDED, Boundary, Opener, Place
from agentbox.sandbox.seccomp import agent_filter

if TYPE_CHECKING:
    from agentbox.sandbox.launcher.preopened import Preopened

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION = 1
_RULE_PATH, _RULE_PORT = 1, 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (1 << bit for bit in range(6, 13))
_REFER, _TRUNCATE, _IOCTL = (1 << bit for bit in range(13, 16))  # since ABI 2, 3 and 5
_ON_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_BIND, _CONNECT = 1, 2  # since ABI 4
_ABSTRACT, _SIGNAL = 1, 2  # since ABI 6

# Devices are in no letter: handled, and so refused everywhere. No agent has the letter of sockets.
RIGHTS: Final = {
    "r": _READ_FILE,
    "l": _READ_DIR,
    "w": _WRITE_FILE | _TRUNCATE,
    "m": _MAKE_DIR | _MAKE_REG | _MAKE_FIFO | _MAKE_SYM | _REMOVE_DIR | _REMOVE_FILE | _REFER,
    "x": _EXECUTE,
    "d": _IOCTL,
    "s": _MAKE_SOCK,
}
"""What a letter grants: read files, list folders, write, make and remove entries, execute, control a device, make sockets."""

PORTS_SINCE: Final = 4
DEVICES_SINCE: Final = 5
SCOPES_SINCE: Final = 6

_libc = ctypes.CDLL(None, use_errno=True)


class Grant(NamedTuple):
    """A path, with all that lies below it when `below`; `letters` of RIGHTS."""

    path: str
    letters: str
    below: bool = True


def abi() -> int:
    """What this kernel knows; 0 when it has no Landlock, or when a filter around us hides it."""
    try:
        return _call(_CREATE, None, 0, _ASK_VERSION)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def restrict(
    grants: Iterable[Grant], ports: Iterable[int] | None, known: int, binds: Iterable[int] | None = None,
    boundary: Boundary = UNBOUNDED, ahead: "Preopened | None" = None,
) -> None:  # fmt: skip
    """Confines this process and all that descend from it, for good. Arguments as for `ruleset`. Needs no_new_privs. Raises
    OSError."""
    made = ruleset(grants, ports, known, binds, boundary, ahead)
    try:
        _call(_RESTRICT, made, 0)
    finally:
        os.close(made)


def ruleset(
    grants: Iterable[Grant], ports: Iterable[int] | None, known: int, binds: Iterable[int] | None = None,
    boundary: Boundary = UNBOUNDED, ahead: "Preopened | None" = None,
) -> int:  # fmt: skip
    """A descriptor of rules that are in force nowhere yet. A granted path that is not there grants nothing; one that leads
    over a link that an agent may have made, or past the boundary, ends it.

    `ports`: those that TCP may connect to; None leaves connecting alone, and binding where `binds` is None too. `binds`:
    those that it may bind, 0 for any that the kernel hands out. `known`: the ABI to use, of which at least 1 must be there.
    `ahead`: what need not be opened again. Raises OSError.
    """
    files = _files(known)
    net = (_CONNECT if ports is not None else 0) | (_BIND if (ports, binds) != (None, None) else 0)
    net = net if known >= PORTS_SINCE else 0
    scopes = _ABSTRACT | _SIGNAL if known >= SCOPES_SINCE else 0
    attributes = struct.pack("=QQQ", files, net, scopes)[: 24 if scopes else 16 if known >= PORTS_SINCE else 8]
    made = _call(_CREATE, attributes, len(attributes), 0)
    try:
        fitting = ahead if ahead is not None and ahead.fits(boundary) else None
        with Opener(boundary) as opener:
            for grant in grants:
                with suppress(
                    FileNotFoundError, NotADirectoryError, PermissionError
                ):  # what we cannot see the agent cannot either
                    place = fitting.place(grant.path) if fitting else None
                    _allow(made, grant, files, opener.checked(grant.path, place) if place else opener.open(grant.path))
        for right, named in ((_CONNECT, ports), (_BIND, binds)) if net else ():
            for port in named or ():
                _call(_ADD, made, _RULE_PORT, struct.pack("=QQ", right, port), 0)
    except BaseException:
        os.close(made)
        raise
    return made


def _files(known: int) -> int:
    highest = 16 if known >= DEVICES_SINCE else 15 if known >= 3 else 14 if known >= 2 else 13
    return (1 << highest) - 1


def _allow(made: int, grant: Grant, handled: int, place: Place) -> None:
    if place.is_folder and not grant.below:
        return
    if wanted := _rights(grant.letters) & handled & (-1 if place.is_folder else _ON_FILES):
        _call(_ADD, made, _RULE_PATH, struct.pack("=Qi", wanted, place.descriptor), 0)


@cache
def _rights(letters: str) -> int:
    return sum(RIGHTS[letter] for letter in set(letters))


def _call(number: int, *arguments: bytes | int | None) -> int:
    registers = (*map(_wide, arguments), *(ctypes.c_long(0),) * (4 - len(arguments)))
    found: int = _libc.syscall(ctypes.c_long(number), *registers, *map(ctypes.c_ulong, agent_filter.OWN))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return found


def _wide(argument: bytes | int | None) -> ctypes.c_long | bytes | None:
    return ctypes.c_long(argument) if isinstance(argument, int) else argument
