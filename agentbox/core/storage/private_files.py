"""Files that only the box's user may read."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def make_private(path: Path) -> None:
    """0600 for a database, new or old, and for what SQLite makes beside it, which takes the mode of the file.
    Raises OSError.

    A file that exists is not opened: closing a descriptor of it would end the locks that this process has on it
    (fcntl_locking(2)), another connection's too.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        for file in (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")):
            with suppress(FileNotFoundError):
                if stat.S_IMODE(file.stat().st_mode) != 0o600:
                    file.chmod(0o600)
