"""Sizes and removal of files and directories."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode


def size_of(path: Path) -> int:
    """The bytes below a path that this user may see; links are not followed."""
    if path.is_symlink() or not path.exists():
        return 0
    if not path.is_dir():
        return path.stat().st_size
    total = 0
    for directory, _names, files in os.walk(path):
        for name in files:
            try:
                total += Path(directory, name).lstat().st_blocks * 512
            except OSError:  # removed meanwhile, or not visible to this user
                continue
    return total


def is_plain_path(name: str) -> bool:
    """True for an absolute path below the root directory without `..`: what else an inventory has
    is damage.
    """
    path = Path(name)
    return path.is_absolute() and len(path.parts) > 1 and ".." not in path.parts


def remove(path: Path) -> None:
    """Removes a file, a link or a directory; nothing if it is missing. A mount point below it is
    an error. Raises AgentboxError (exit 3)."""
    if not os.path.lexists(path):
        return
    if mounted := _mount_below(path):
        raise AgentboxError(
            f"cannot remove {path}: {mounted} is a mount point", f"Run: umount {mounted}"
        )
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            _make_writable(path)
            shutil.rmtree(path)
    except OSError as error:
        raise AgentboxError(
            f"cannot remove {error.filename or path}: {error.strerror}",
            "Run the command as the owner of that file, or with sudo.",
            exit_code=ExitCode.PREREQUISITE,
        ) from error


def remove_empty(paths: Iterable[Path]) -> None:
    """Removes those directories that are empty, the lowest first. Raises AgentboxError."""
    for path in sorted(set(paths), key=lambda path: len(path.parts), reverse=True):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            try:
                path.rmdir()
            except OSError as error:
                raise AgentboxError(f"cannot remove {path}: {error.strerror}") from error


def _make_writable(directory: Path) -> None:
    """Directories of a Nix store and of agents may be read-only, which stops all but root."""
    if os.geteuid() == 0:
        return
    for step, names, _files in os.walk(directory):
        for name in (step, *(os.path.join(step, name) for name in names)):  # noqa: PTH118
            path = Path(name)
            if not path.is_symlink() and path.stat().st_uid == os.geteuid():
                path.chmod(0o700)


def _mount_below(path: Path) -> str:
    """A mount point at or below a path, "" if there is none."""
    prefix = f"{path.resolve()}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4].replace("\\040", " ")
        if point == prefix or point.startswith(prefix + "/"):
            return point
    return ""
