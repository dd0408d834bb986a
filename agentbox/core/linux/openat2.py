"""openat2(2), which the standard library lacks. Numbers: linux/openat2.h."""

import ctypes
import os
import struct
from functools import lru_cache
from typing import Final

NO_MAGICLINKS: Final = 0x02  # RESOLVE_NO_MAGICLINKS
_NO_SYMLINKS, _BENEATH = 0x04, 0x08
_OPENAT2: Final = 437  # same number on all architectures

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.argtypes = (
    *(ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t),
)  # declared once: starting an agent opens about fifty names
_how: Final = lru_cache(struct.Struct("=QQQ").pack)


def openat2(directory_fd: int, path: bytes, flags: int, resolve: int) -> int:
    """Returns a close-on-exec descriptor. Raises OSError."""
    how = _how(flags | os.O_CLOEXEC, 0, resolve)
    fd: int = _syscall(_OPENAT2, directory_fd, path, how, len(how))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


def open_beneath(root: int, path: str, flags: int = os.O_PATH | os.O_DIRECTORY) -> int:
    """A descriptor of `path` below `root`, without following links. Raises OSError: ELOOP for a
    link, EXDEV for a path that leads outside.
    """
    return openat2(root, os.fsencode(path or "."), flags, _BENEATH | _NO_SYMLINKS | NO_MAGICLINKS)
