"""The private folders of an agent: HOME and TMPDIR, on the volume that agents fill (/tmp of a box is noexec)."""

import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentbox.core.paths import Paths

_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH_FLAGS: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def agent_dir(paths: Paths, agent_id: str) -> Path:
    """Where everything private of that agent lies."""
    return paths.branches / agent_id


def create(directory: Path) -> tuple[Path, Path]:
    """HOME and TMPDIR, 0700. What an earlier life left in them stays. Raises OSError."""
    home, temp = directory / "home", directory / "tmp"
    for path in (directory, home, temp):
        path.mkdir(mode=0o700, parents=path == directory, exist_ok=True)
    return home, temp


def remove_private(directory: Path) -> None:
    """Deletes what ends with the agent; a branch beside it stays. Raises OSError."""
    for name in ("home", "tmp"):
        remove(directory / name)
    with suppress(OSError):  # not there, or not empty
        directory.rmdir()


def remove(directory: Path) -> None:
    """Deletes it all: folders that the agent closed to itself, and folders in folders however deep. Follows no link.
    Raises OSError."""
    if not directory.exists():
        return
    try:
        shutil.rmtree(directory)
    except (OSError, RecursionError):
        _flatten(directory)
        directory.rmdir()


def _flatten(directory: Path) -> None:
    """Empties it. What a folder in it holds in folders is moved up before that one goes: two descriptors, and no path grows."""
    top = _open_writable(str(directory), None)
    try:
        while inner := [name for name in os.listdir(top) if not _unlink_file(name, top)]:  # noqa: PTH208 - of a descriptor
            for name in inner:
                inner_fd = _open_writable(name, top)
                try:
                    for child in os.listdir(inner_fd):  # noqa: PTH208
                        if not _unlink_file(child, inner_fd):
                            os.close(
                                _open_writable(child, inner_fd)
                            )  # a closed folder can be moved to no other
                            os.rename(
                                child, secrets.token_hex(16), src_dir_fd=inner_fd, dst_dir_fd=top
                            )
                finally:
                    os.close(inner_fd)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def _unlink_file(name: str, dir_fd: int) -> bool:
    """False for a folder, which stays."""
    if stat.S_ISDIR(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=dir_fd)
    return True


def _open_writable(name: str, dir_fd: int | None) -> int:
    """A folder, open to its owner from now on."""
    path_fd = os.open(name, _PATH_FLAGS, dir_fd=dir_fd)
    try:
        Path(f"/proc/self/fd/{path_fd}").chmod(
            stat.S_IRWXU
        )  # the descriptor, whatever its name is by now
        return os.open(".", _DIRECTORY_FLAGS, dir_fd=path_fd)
    finally:
        os.close(path_fd)
