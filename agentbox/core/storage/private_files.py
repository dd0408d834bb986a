"""Files readable by the box's user only."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def make_private(path: Path) -> None:
    """Sets mode 0600 for a database and its companion files, which inherit the mode. Raises
    OSError. An existing file is not opened: closing a descriptor would release the locks of this
    process (fcntl_locking(2)), those of other connections too.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        for file in (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")):
            with suppress(FileNotFoundError):
                if stat.S_IMODE(file.stat().st_mode) != 0o600:
                    file.chmod(0o600)
