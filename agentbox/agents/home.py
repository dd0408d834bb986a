"""The private folders of an agent: HOME and TMPDIR, on the volume that agents fill (/tmp of a box is noexec)."""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from agentbox.settings import Paths


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
    """Deletes it all, folders that the agent closed to itself too. Follows no link. Raises OSError."""
    if not folder.exists():
        return
    try:
        shutil.rmtree(folder)
    except PermissionError:
        for parent, folders, _ in os.walk(folder):  # top down: a folder is opened before it is entered
            for path in (Path(parent), *(Path(parent, name) for name in folders)):
                if not path.is_symlink():
                    path.chmod(stat.S_IRWXU)
        shutil.rmtree(folder)
