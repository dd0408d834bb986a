"""Landlock rulesets that allow writes in given paths only. Numbers and bits: linux/landlock.h; the
system call numbers are the same on all architectures (since Linux 5.13).
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from agentbox.core.linux.kernel import checked
from agentbox.core.linux.path_opener import Opener

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_FILE_WRITES = 1 << 1  # write_file
_TRUNCATE = 1 << 14  # ABI 3
_DIRECTORY_WRITES = sum(1 << bit for bit in range(4, 13))  # remove_dir .. make_sym
_REFER = 1 << 13  # ABI 2

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The Landlock ABI of the running kernel, 0 if absent or disabled."""
    return max(0, int(_libc.syscall(_CREATE, None, 0, _VERSION_FLAG)))


def set_no_new_privileges() -> None:
    """prctl(PR_SET_NO_NEW_PRIVS): no exec below this process gains privileges. Raises OSError."""
    checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def restrict_writes(paths: Iterable[Path]) -> None:
    """Restricts this process and its children: outside `paths` nothing can be written, created,
    renamed or removed. A path is a file, or a directory with everything below it; missing ones are
    skipped. Files that are already open stay writable. Needs `set_no_new_privileges`. Raises
    OpenDenied for a link that a process of the box may have created, and OSError, also if the
    kernel has no Landlock.
    """
    rights = handled_rights(abi())
    ruleset = checked(_libc.syscall(_CREATE, struct.pack("Q", rights), 8, 0))
    try:
        with Opener() as opener:
            for path in paths:
                _add_path_rule(ruleset, path, rights, opener)
        checked(_libc.syscall(_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)


def handled_rights(version: int) -> int:
    """All modifying rights of this ABI."""
    return (
        _FILE_WRITES
        | _DIRECTORY_WRITES
        | (_REFER if version >= 2 else 0)
        | (_TRUNCATE if version >= 3 else 0)
    )


def _add_path_rule(ruleset: int, path: Path, rights: int, opener: Opener) -> None:
    try:
        opened = opener.open(str(path))
    except (FileNotFoundError, NotADirectoryError):
        return
    if not opened.is_directory:
        rights &= _FILE_WRITES | _TRUNCATE
    rule = struct.pack(
        "=Qi", rights, opened.descriptor
    )  # the kernel's struct is packed: no padding after the descriptor
    checked(_libc.syscall(_ADD, ruleset, _PATH_BENEATH, rule, 0))
