"""Landlock system calls: the paths, TCP ports and processes that a process and its descendants can
reach. Numbers: linux/landlock.h; the calls have the same numbers on all architectures. An older
kernel (ABI) gets fewer rules; `sandbox/confinement.py` reports what is not enforced. See man 7
landlock.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Final, NamedTuple

from agentbox.core.linux.path_opener import UNBOUNDED, Boundary, OpenedPath, Opener
from agentbox.core.linux.preopened_paths import PreopenedPaths

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH, _RULE_PORT = 1, 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (
    1 << bit for bit in range(6)
)
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (
    1 << bit for bit in range(6, 13)
)
_REFER, _TRUNCATE, _IOCTL = (1 << bit for bit in range(13, 16))  # since ABI 2, 3 and 5
_FILE_RIGHTS: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_BIND, _CONNECT = 1, 2  # since ABI 4
_ABSTRACT, _SIGNAL = 1, 2  # since ABI 6

# Device nodes have no letter: handled, hence denied everywhere. No agent has the letter for
# sockets.
RIGHTS: Final = {
    "r": _READ_FILE,
    "l": _READ_DIR,
    "w": _WRITE_FILE | _TRUNCATE,
    "m": _MAKE_DIR | _MAKE_REG | _MAKE_FIFO | _MAKE_SYM | _REMOVE_DIR | _REMOVE_FILE | _REFER,
    "x": _EXECUTE,
    "d": _IOCTL,
    "s": _MAKE_SOCK,
}
"""Letters: read files, list directories, write, create and remove entries, execute, device ioctl,
create sockets.
"""

PORTS_MIN_ABI: Final = 4
DEVICES_MIN_ABI: Final = 5
SCOPES_MIN_ABI: Final = 6

# Passed in the last two registers, which none of these calls uses: a seccomp filter that refuses
# Landlock to agents allows it to the launcher. Random for each launcher, not in an agent's memory,
# and returned by no call.
LAUNCHER_COOKIE: Final = (
    int.from_bytes(os.urandom(8), "little"),
    int.from_bytes(os.urandom(8), "little"),
)

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.argtypes = (
    *(ctypes.c_long, *(ctypes.c_void_p,) * 4, *(ctypes.c_ulong,) * 2),
)  # declared once: starting an agent adds about forty rules


class PathRule(NamedTuple):
    """A path, with everything below it if `recursive`; `letters` of RIGHTS."""

    path: str
    letters: str
    recursive: bool = True


def abi() -> int:
    """The ABI of this kernel; 0 if it has no Landlock or if a seccomp filter blocks it."""
    try:
        return _call(_CREATE, None, 0, _VERSION_FLAG)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def restrict(
    rules: Iterable[PathRule],
    connect_ports: Iterable[int] | None,
    abi_version: int,
    bind_ports: Iterable[int] | None = None,
    boundary: Boundary = UNBOUNDED,
    preopened: PreopenedPaths | None = None,
) -> None:
    """Permanently confines this process and its descendants. Arguments as for `ruleset`. Needs
    no_new_privs. Raises OSError.
    """
    ruleset_fd = ruleset(rules, connect_ports, abi_version, bind_ports, boundary, preopened)
    try:
        _call(_RESTRICT, ruleset_fd, 0)
    finally:
        os.close(ruleset_fd)


def ruleset(
    rules: Iterable[PathRule],
    connect_ports: Iterable[int] | None,
    abi_version: int,
    bind_ports: Iterable[int] | None = None,
    boundary: Boundary = UNBOUNDED,
    preopened: PreopenedPaths | None = None,
) -> int:
    """Creates a ruleset that is not in force yet and returns its descriptor. A missing path grants
    nothing. A path over a link that an agent may have created, or outside the boundary, is an
    error. `connect_ports`: TCP ports to connect to; None leaves connecting unrestricted, and
    binding too if `bind_ports` is None. `bind_ports`: ports to bind, 0 for ephemeral ones.
    `abi_version`: at least 1. `preopened`: paths that need not be opened again. Raises OSError.
    """
    files = _handled_rights(abi_version)
    net = (_CONNECT if connect_ports is not None else 0) | (
        _BIND if (connect_ports, bind_ports) != (None, None) else 0
    )
    net = net if abi_version >= PORTS_MIN_ABI else 0
    scopes = _ABSTRACT | _SIGNAL if abi_version >= SCOPES_MIN_ABI else 0
    attributes = struct.pack("=QQQ", files, net, scopes)[
        : 24 if scopes else 16 if abi_version >= PORTS_MIN_ABI else 8
    ]
    ruleset_fd = _call(_CREATE, attributes, len(attributes), 0)
    try:
        usable = preopened if preopened is not None and preopened.is_safe_within(boundary) else None
        with Opener(boundary) as opener:
            for rule in rules:
                with suppress(
                    FileNotFoundError, NotADirectoryError, PermissionError
                ):  # what this process cannot see, the agent cannot see either
                    opened = usable.find(rule.path) if usable else None
                    _add_path_rule(
                        ruleset_fd,
                        rule,
                        files,
                        opener.check(rule.path, opened) if opened else opener.open(rule.path),
                    )
        for right, allowed in ((_CONNECT, connect_ports), (_BIND, bind_ports)) if net else ():
            for port in allowed or ():
                _call(_ADD, ruleset_fd, _RULE_PORT, struct.pack("=QQ", right, port), 0)
    except BaseException:
        os.close(ruleset_fd)
        raise
    return ruleset_fd


def _handled_rights(abi_version: int) -> int:
    count = (
        16
        if abi_version >= DEVICES_MIN_ABI
        else 15
        if abi_version >= 3
        else 14
        if abi_version >= 2
        else 13
    )
    return (1 << count) - 1


def _add_path_rule(ruleset_fd: int, rule: PathRule, handled: int, opened: OpenedPath) -> None:
    if opened.is_directory and not rule.recursive:
        return
    if rights := _rights(rule.letters) & handled & (-1 if opened.is_directory else _FILE_RIGHTS):
        _call(_ADD, ruleset_fd, _RULE_PATH, struct.pack("=Qi", rights, opened.descriptor), 0)


@cache
def _rights(letters: str) -> int:
    return sum(RIGHTS[letter] for letter in set(letters))


def _call(number: int, *arguments: bytes | int | None) -> int:
    registers = (*arguments, *(None,) * (4 - len(arguments)))
    result: int = _syscall(number, *registers, *LAUNCHER_COOKIE)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result
