"""The rendered files of a start, kept to start the same generation again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from agentbox.core.paths import Paths
from agentbox.host.engines.process.privilege_drop import BOX_UID

_FOLDERS = ("opt/agentbox/share", "opt/agentbox/skills", "etc")


def store_files(root: Path, folder: Path) -> None:
    """Copies the files that the boot reads, without secrets. Raises OSError."""
    for name in _FOLDERS:
        if (root / name).exists():
            shutil.copytree(root / name, folder / name, dirs_exist_ok=True)


def write_stored_files(root: Path, folder: Path, python: str, project: str) -> None:
    """Replaces the box's files by stored ones. Raises OSError."""
    from agentbox.host.engines.process.box_files import link_workspace

    paths = Paths(root)
    for directory in (paths.run, paths.mounted_secrets, paths.logs / "supervisor", paths.tmp):
        directory.mkdir(parents=True, exist_ok=True)
    link_workspace(paths.workspace, Path(project) if project else None)
    for name in _FOLDERS:
        if (root / name).exists():
            shutil.rmtree(root / name)
        if (folder / name).exists():
            shutil.copytree(folder / name, root / name)
    paths.venv.unlink(missing_ok=True)
    paths.venv.parent.mkdir(parents=True, exist_ok=True)
    paths.venv.symlink_to(python)
    if os.geteuid() == 0:
        for top in ("opt", "etc", "run", "tmp", "var/log"):
            own(root / top)


def own(top: Path) -> None:
    """Gives a tree to the box's user; links are not followed. Raises OSError."""
    for directory, _names, files in os.walk(top):
        parent = Path(directory)
        for path in (parent, *(parent / name for name in files)):
            os.lchown(path, BOX_UID, BOX_UID)
