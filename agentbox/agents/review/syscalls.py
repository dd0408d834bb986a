"""Two calls that the standard library has not: renameat2, syncfs. man 2 of each; linux/fs.h."""

import ctypes
import os

_NOREPLACE, _EXCHANGE = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def exchange(folder: int, name: str, other: int, other_name: str) -> None:
    """The two entries change places, at once. Raises OSError."""
    _rename(folder, name, other, other_name, _EXCHANGE)


def move(folder: int, name: str, other: int, other_name: str) -> None:
    """Renames to a name that is free. Raises OSError: FileExistsError when it is taken."""
    _rename(folder, name, other, other_name, _NOREPLACE)


def sync_volume(descriptor: int) -> None:
    """Waits until the disk has all of that file system. Raises OSError."""
    _checked(_libc.syncfs(ctypes.c_int(descriptor)))


def _rename(folder: int, name: str, other: int, other_name: str, flags: int) -> None:
    _checked(
        _libc.renameat2(
            ctypes.c_int(folder), ctypes.c_char_p(os.fsencode(name)),
            ctypes.c_int(other), ctypes.c_char_p(os.fsencode(other_name)), ctypes.c_uint(flags),
        )
    )  # fmt: skip


def _checked(found: int) -> int:
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found
