"""openat2(2), which the standard library has not. Numbers: linux/openat2.h."""

import ctypes
import os
import struct
from typing import Final

NO_MAGICLINKS: Final = 0x02  # RESOLVE_NO_MAGICLINKS
_NO_SYMLINKS, _BENEATH = 0x04, 0x08
_OPENAT2: Final = 437  # one number on every architecture

_libc = ctypes.CDLL(None, use_errno=True)


def openat2(folder: int, path: bytes, flags: int, resolve: int) -> int:
    """A descriptor that is closed on exec. Raises OSError."""
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolve)
    made: int = _libc.syscall(ctypes.c_long(_OPENAT2), ctypes.c_long(folder), path, how, ctypes.c_long(len(how)))
    if made < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return made


def open_beneath(root: int, path: str, flags: int = os.O_PATH | os.O_DIRECTORY) -> int:
    """A descriptor of what lies at `path` below `root`, reached over no link. Raises OSError: ELOOP for a link, EXDEV for a
    path that leads out."""
    return openat2(root, os.fsencode(path or "."), flags, _BENEATH | _NO_SYMLINKS | NO_MAGICLINKS)
