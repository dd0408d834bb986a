"""Two system calls missing from the standard library: renameat2, syncfs. man 2 of each;
linux/fs.h."""

import ctypes
import os

_NOREPLACE, _EXCHANGE = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def exchange(dir_fd: int, name: str, other_dir_fd: int, other_name: str) -> None:
    """Exchange two entries atomically. Raises OSError."""
    _rename(dir_fd, name, other_dir_fd, other_name, _EXCHANGE)


def move(dir_fd: int, name: str, other_dir_fd: int, other_name: str) -> None:
    """Rename to a free name. Raises OSError: FileExistsError if it is taken."""
    _rename(dir_fd, name, other_dir_fd, other_name, _NOREPLACE)


def sync_volume(descriptor: int) -> None:
    """Wait until that file system is on disk. Raises OSError."""
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
