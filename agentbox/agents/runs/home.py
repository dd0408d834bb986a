"""Private directories of an agent: HOME and TMPDIR, on the volume that agents fill (/tmp of a box
is noexec)."""

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
    """Directory of all private files of that agent."""
    return paths.branches / agent_id


def create(directory: Path) -> tuple[Path, Path]:
    """HOME and TMPDIR, 0700. Existing content is kept. Raises OSError."""
    home, temp = directory / "home", directory / "tmp"
    for path in (directory, home, temp):
        path.mkdir(mode=0o700, parents=path == directory, exist_ok=True)
    return home, temp


def empty_workspace(directory: Path) -> Path:
    """A folder in TMPDIR, for a program that sees the branch of no agent. Raises OSError."""
    _, temp = create(directory)
    workspace = temp / "workspace"
    workspace.mkdir(mode=0o700, exist_ok=True)
    return workspace


def remove_private(directory: Path) -> None:
    """Delete what ends with the agent; a branch beside it is kept. Raises OSError."""
    for name in ("home", "tmp"):
        remove(directory / name)
    with suppress(OSError):  # missing, or not empty
        directory.rmdir()


def remove(directory: Path) -> None:
    """Delete recursively, including directories without permissions and deeply nested ones. Follows
    no link. Raises OSError."""
    if not directory.exists():
        return
    try:
        shutil.rmtree(directory)
    except (OSError, RecursionError):
        _flatten(directory)
        directory.rmdir()


def _flatten(directory: Path) -> None:
    """Empty the directory. Nested directories are moved up before their parent is removed, which
    needs two descriptors and no long path."""
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
                            )  # a directory without permissions cannot be moved
                            os.rename(
                                child, secrets.token_hex(16), src_dir_fd=inner_fd, dst_dir_fd=top
                            )
                finally:
                    os.close(inner_fd)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def _unlink_file(name: str, dir_fd: int) -> bool:
    """False for a directory, which is kept."""
    if stat.S_ISDIR(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=dir_fd)
    return True


def _open_writable(name: str, dir_fd: int | None) -> int:
    """Open a directory and give its owner full permissions."""
    path_fd = os.open(name, _PATH_FLAGS, dir_fd=dir_fd)
    try:
        Path(f"/proc/self/fd/{path_fd}").chmod(
            stat.S_IRWXU
        )  # the open file itself, even if renamed
        return os.open(".", _DIRECTORY_FLAGS, dir_fd=path_fd)
    finally:
        os.close(path_fd)
