"""The state of a process-engine box by generation. What is mounted is `var/lib/agentbox` below the
root; other volumes wait in `volumes/<name>`, each a prefix of its own with the same path in it, and
are exchanged by renames while the box is down. Branches are below the state, so they go with it.
Workspace and snapshots are volumes beside it: those that wait are `volumes/<name>/data`.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from agentbox.core.files.atomic_text import write_atomically
from agentbox.core.paths import Paths
from agentbox.host.engines.process.privilege_drop import BOX_UID
from agentbox.plan.names import BACKUPS, STATE, WORKSPACE

_MOUNTED, _DATA = "mounted", "data"


def volume_prefix(root: Path, volumes: Mapping[str, str]) -> Path:
    """The prefix whose state is that of the generation: the root if it is mounted."""
    name = volumes.get(STATE, STATE)
    return root if mounted(root) == name else root / "volumes" / name


def mounted(root: Path) -> str:
    """The name of the volume below the root."""
    marker = root / "volumes" / _MOUNTED
    return marker.read_text().strip() if marker.exists() else STATE


def make_volume(prefix: Path) -> None:
    """Makes an empty state volume with that prefix, owned by the box's user. Raises OSError."""
    state = Paths(prefix).state
    state.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        for step in (state, *state.parents):
            if step.is_relative_to(prefix):
                os.chown(step, BOX_UID, BOX_UID)


def mount(root: Path, volumes: Mapping[str, str]) -> None:
    """Puts the generation's state below the root. A call that was interrupted is finished by the
    next one: the state is missing below the root from the first rename to the last. Raises OSError.
    """
    wanted, state = volumes.get(STATE, STATE), Paths(root).state
    if mounted(root) == wanted and state.exists():
        _mount_beside(root, volumes)
        return
    parked = Paths(root / "volumes" / wanted).state
    if mounted(root) != wanted:
        if not parked.exists():
            raise FileNotFoundError(f"no volume {wanted} below {root}")
        if state.exists():
            aside = Paths(root / "volumes" / mounted(root)).state
            aside.parent.mkdir(parents=True, exist_ok=True)
            state.rename(aside)
        write_atomically(root / "volumes" / _MOUNTED, f"{wanted}\n", 0o644)
    if parked.exists():
        state.parent.mkdir(parents=True, exist_ok=True)
        parked.rename(state)
    _mount_beside(root, volumes)


def _mount_beside(root: Path, volumes: Mapping[str, str]) -> None:
    """Puts snapshots and workspace of the generation in place."""
    _carry_snapshots(root)
    workspace = Paths(root).workspace
    saved = own_workspace(workspace)
    own = saved if workspace.is_symlink() or saved.exists() else workspace
    for name, place in ((BACKUPS, Paths(root).backups), (WORKSPACE, own)):
        marker = root / "volumes" / f"{_MOUNTED}-{name}"
        present = marker.read_text().strip() if marker.exists() else name
        wanted = volumes.get(name, name)
        if present != wanted:
            if place.exists():
                aside = root / "volumes" / present / _DATA
                aside.parent.mkdir(parents=True, exist_ok=True)
                place.rename(aside)
            marker.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(marker, f"{wanted}\n", 0o644)
        if (parked := root / "volumes" / wanted / _DATA).exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            parked.rename(place)


def own_workspace(workspace: Path) -> Path:
    """Where the box's own workspace is while a project is linked in its place."""
    return workspace.with_name(f"{workspace.name}.own")


def _carry_snapshots(root: Path) -> None:
    """Snapshots are a volume of their own, below the state: they stay with the box, not with one
    generation of its state. Where two volumes have some, they are joined; raises FileExistsError
    for different snapshots of one name.
    """
    target = Paths(root).backups
    for name in volume_names(root):
        waiting = Paths(root / "volumes" / name).backups
        if waiting.is_dir() and any(waiting.iterdir()):
            if target.is_dir() and not any(target.iterdir()):
                target.rmdir()
            if target.is_symlink() or waiting.is_symlink():
                raise NotADirectoryError(f"{target} or {waiting} is a link; remove it")
            if not target.exists():
                waiting.rename(target)
            else:
                _join_snapshots(waiting, target)


def _join_snapshots(waiting: Path, target: Path) -> None:
    """A head moves after its archive, so that an interrupted call leaves no head without one. The
    record of `target` stays: what it does not know was not removed.
    """
    from agentbox.backup.folder import LOCK, STAGING  # not for verbs that start nothing
    from agentbox.backup.heads import RECORD_FILE

    ours = {RECORD_FILE, LOCK, STAGING}
    names = sorted(path.name for path in waiting.iterdir() if path.name not in ours)
    names = [name for name in names if not name.startswith(".")]
    if twice := [name for name in names if _differ(waiting / name, target / name)]:
        raise FileExistsError(
            f"{twice[0]} is in {waiting} and, with other content, in {target}: move one away"
        )
    for name in sorted(names, key=lambda name: name.endswith(".json")):
        if not (target / name).exists():
            (waiting / name).rename(target / name)
    shutil.rmtree(waiting)


def _differ(waiting: Path, target: Path) -> bool:
    """Whether both are there and are not equal regular files."""
    if not os.path.lexists(target):
        return False
    if any(path.is_symlink() or not path.is_file() for path in (waiting, target)):
        return True
    return not filecmp.cmp(waiting, target, shallow=False)


def discard(root: Path, volumes: Mapping[str, str]) -> None:
    """Removes volumes that wait, by their name in the plan. Raises OSError."""
    prefix = volume_prefix(root, volumes)
    if STATE in volumes and prefix != root and prefix.exists():
        shutil.rmtree(prefix)
    for name in (BACKUPS, WORKSPACE):
        if name in volumes and (parked := root / "volumes" / volumes[name] / _DATA).exists():
            shutil.rmtree(parked.parent)


def volume_names(root: Path) -> list[str]:
    """The volumes that wait, sorted."""
    directory = root / "volumes"
    if not directory.is_dir():
        return []
    return sorted(path.name for path in directory.iterdir() if Paths(path).state.is_dir())
