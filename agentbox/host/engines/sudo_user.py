"""The user behind sudo: files of the command in that user's directories belong to that user."""

from __future__ import annotations

import os
from pathlib import Path

from agentbox.core.paths import environment


def invoking_user() -> tuple[int, int] | None:
    """Return uid and gid of the user behind sudo; None if there is none or it is root."""
    env = environment()
    if (
        os.geteuid() != 0
        or not env.get("SUDO_UID", "").isdigit()
        or not env.get("SUDO_GID", "").isdigit()
    ):
        return None
    uid, gid = int(env["SUDO_UID"]), int(env["SUDO_GID"])
    return (uid, gid) if uid != 0 else None


def make_directory(directory: Path, mode: int = 0o700) -> None:
    """Creates a directory with that mode and its missing parents, all owned by the caller. Raises
    OSError.
    """
    missing = [step for step in (directory, *directory.parents) if not step.exists()]
    directory.mkdir(parents=True, exist_ok=True, mode=mode)
    directory.chmod(mode)
    if (owner := invoking_user()) is not None:
        for step in (directory, *missing):
            os.lchown(step, *owner)


def chown_file(path: Path) -> None:
    """Gives one file to the caller; no effect without sudo. Raises OSError."""
    if (owner := invoking_user()) is not None:
        os.lchown(path, *owner)


def chown_tree(directory: Path) -> None:
    """Gives everything below the directory to the caller; no effect without sudo. Links are not
    followed. Raises OSError.
    """
    if (owner := invoking_user()) is None or not directory.exists():
        return
    for parent, directories, files in os.walk(directory):
        for name in (".", *directories, *files):
            path = Path(parent, name)
            status = path.lstat()
            if (status.st_uid, status.st_gid) != owner:
                os.lchown(path, *owner)
