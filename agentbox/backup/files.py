"""Files of a repository. A box can write its own repository, and the host opens it as root: no link
is followed, nothing but a regular file is opened, and what is read whole has a bound.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Final

from agentbox.core.files.atomic import write_all

MAX_HEAD: Final = 256 << 20  # bytes of a head; a million files have some 150 MB
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class NotRegular(OSError):
    """The file is a link, a pipe, a device or a folder, or is larger than its bound: `why`."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EINVAL, why)
        self.why = why


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor. Raises NotRegular, OSError."""
    try:
        descriptor = os.open(path, flags | _FLAGS, 0o600)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise
        raise NotRegular("is not a regular file") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular("is not a regular file")
    return descriptor


def open_file(path: Path) -> BufferedReader:
    """For reading. Raises NotRegular, OSError."""
    return os.fdopen(open_regular(path), "rb")


def read_bounded(path: Path, most: int = MAX_HEAD) -> bytes:
    """All bytes. Raises NotRegular, also for a file of more than `most` bytes; OSError."""
    with open_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise NotRegular(f"has more than {most} bytes")
    return data


def take_owner(descriptor: int, folder: Path) -> None:
    """Gives a file that root made the owner of its folder, so that the box can use it later."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def write_synced(path: Path, data: bytes) -> None:
    """A new file in place of what is there, with the owner of its folder. Raises OSError."""
    path.unlink(missing_ok=True)
    descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        take_owner(descriptor, path.parent)
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
