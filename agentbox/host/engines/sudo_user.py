"""Who called: under sudo, what the command leaves in the caller's folders belongs to the caller."""

from __future__ import annotations

import os
from pathlib import Path

from agentbox.core.paths import environment


def caller() -> tuple[int, int] | None:
    """uid and gid of the user behind sudo; None when there is none (or when that is root too)."""
    env = environment()
    if os.geteuid() != 0 or not env.get("SUDO_UID", "").isdigit() or not env.get("SUDO_GID", "").isdigit():
        return None
    uid, gid = int(env["SUDO_UID"]), int(env["SUDO_GID"])
    return (uid, gid) if uid != 0 else None


def make_folder(folder: Path, mode: int = 0o700) -> None:
    """Makes a folder with that mode, and its missing parents, all owned by the caller. Raises OSError."""
    missing = [step for step in (folder, *folder.parents) if not step.exists()]
    folder.mkdir(parents=True, exist_ok=True, mode=mode)
    folder.chmod(mode)
    if (who := caller()) is not None:
        for step in (folder, *missing):
            os.lchown(step, *who)


def hand_over_file(path: Path) -> None:
    """Gives one file to the caller; nothing without sudo. Raises OSError."""
    if (who := caller()) is not None:
        os.lchown(path, *who)


def hand_over(folder: Path) -> None:
    """Gives everything below the folder to the caller; nothing without sudo. Links are not followed. Raises OSError."""
    if (who := caller()) is None or not folder.exists():
        return
    for parent, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            path = Path(parent, name)
            found = path.lstat()
            if (found.st_uid, found.st_gid) != who:
                os.lchown(path, *who)
