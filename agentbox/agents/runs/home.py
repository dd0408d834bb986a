"""The private folders of an agent: HOME and TMPDIR, on the volume that agents fill (/tmp of a box is noexec)."""

import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentbox.core.paths import Paths

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def of_agent(paths: Paths, agent_id: str) -> Path:
    """Where everything private of that agent lies."""
    return paths.branches / agent_id


def make(folder: Path) -> tuple[Path, Path]:
    """HOME and TMPDIR, 0700. What an earlier life left in them stays. Raises OSError."""
    home, temp = folder / "home", folder / "tmp"
    for path in (folder, home, temp):
        path.mkdir(mode=0o700, parents=path == folder, exist_ok=True)
    return home, temp


def end(folder: Path) -> None:
    """Deletes what ends with the agent; a branch beside it stays. Raises OSError."""
    for name in ("home", "tmp"):
        remove(folder / name)
    with suppress(OSError):  # not there, or not empty
        folder.rmdir()


def remove(folder: Path) -> None:
    """Deletes it all: folders that the agent closed to itself, and folders in folders however deep. Follows no link.
    Raises OSError."""
    if not folder.exists():
        return
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        _flatten(folder)
        folder.rmdir()


def _flatten(folder: Path) -> None:
    """Empties it. What a folder in it holds in folders is moved up before that one goes: two descriptors, and no path grows."""
    top = _opened(str(folder), None)
    try:
        while inner := [name for name in os.listdir(top) if not _unlinked(name, top)]:  # noqa: PTH208 - of a descriptor
            for name in inner:
                below = _opened(name, top)
                try:
                    for one in os.listdir(below):  # noqa: PTH208
                        if not _unlinked(one, below):
                            os.close(_opened(one, below))  # a closed folder can be moved to no other
                            os.rename(one, secrets.token_hex(16), src_dir_fd=below, dst_dir_fd=top)
                finally:
                    os.close(below)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def _unlinked(name: str, folder: int) -> bool:
    """False for a folder, which stays."""
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True


def _opened(name: str, folder: int | None) -> int:
    """A folder, open to its owner from now on."""
    place = os.open(name, _NAME, dir_fd=folder)
    try:
        Path(f"/proc/self/fd/{place}").chmod(stat.S_IRWXU)  # the descriptor, whatever its name is by now
        return os.open(".", _FOLDER, dir_fd=place)
    finally:
        os.close(place)
