"""Two calls that the standard library has not: renameat2, syncfs. man 2 of each; linux/fs.h."""

import ctypes
import os

_NOREPLACE, _EXCHANGE = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def exchange(dir_fd: int, name: str, other_dir_fd: int, other_name: str) -> None:
    """The two entries change places, at once. Raises OSError."""
    _rename(dir_fd, name, other_dir_fd, other_name, _EXCHANGE)


def move(dir_fd: int, name: str, other_dir_fd: int, other_name: str) -> None:
    """Renames to a name that is free. Raises OSError: FileExistsError when it is taken."""
    _rename(dir_fd, name, other_dir_fd, other_name, _NOREPLACE)


def sync_volume(descriptor: int) -> None:
    """Waits until the disk has all of that file system. Raises OSError."""
    _check_result(_libc.syncfs(ctypes.c_int(descriptor)))


def _rename(dir_fd: int, name: str, other_dir_fd: int, other_name: str, flags: int) -> None:
    _check_result(
        _libc.renameat2(
            ctypes.c_int(dir_fd),
            ctypes.c_char_p(os.fsencode(name)),
            ctypes.c_int(other_dir_fd),
            ctypes.c_char_p(os.fsencode(other_name)),
            ctypes.c_uint(flags),
        )
    )


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
