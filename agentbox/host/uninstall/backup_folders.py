"""Folders of this host that a manifest gives as `backup.folder`: the operator's, never removed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from agentbox.host.engines.docker.compose import MANIFEST
from agentbox.host.engines.state import BoxState
from agentbox.host.uninstall.removal import Kept, Removal

_REASON: Final = "a folder of this host, given as backup.folder"
_FILE_KINDS: Final = frozenset({"volumes", "files", "state", "cache", "data"})


def backup_folders(states: Iterable[BoxState]) -> list[Path]:
    """From the manifests that the boxes were started with, as far as they can be read."""
    files = {state.compose_dir / MANIFEST for state in states}
    files |= {Path(record.manifest) for state in states if (record := state.record()) is not None}
    folders = (_folder(file) for file in files if file.is_file())
    return sorted({Path(folder) for folder in folders if folder.startswith("/")})


def without_folders(
    steps: Sequence[Removal | Kept], folders: Sequence[Path]
) -> list[Removal | Kept]:
    """The steps without those that would remove such a folder; each folder is named."""
    kept: list[Removal | Kept] = [
        Kept(kind="backups", name=str(folder), reason=_REASON, foreign=True) for folder in folders
    ]
    for step in steps:
        inside = [folder for folder in folders if _removes(step, folder)]
        if inside:
            reason = f"{inside[0]} is in it: {_REASON}"
            kept.append(Kept(kind=step.kind, name=step.name, reason=reason, size=step.size))
        else:
            kept.append(step)
    return kept


def _removes(step: Removal | Kept, folder: Path) -> bool:
    if not isinstance(step, Removal) or step.kind not in _FILE_KINDS:
        return False
    return folder.resolve().is_relative_to(Path(step.name).resolve())


def _folder(manifest: Path) -> str:
    """The value, "" without one or if the manifest cannot be read."""
    try:
        backup = tomllib.loads(manifest.read_text()).get("backup", {})
    except (OSError, ValueError):
        return ""
    folder = backup.get("folder", "") if isinstance(backup, dict) else ""
    return folder if isinstance(folder, str) else ""
