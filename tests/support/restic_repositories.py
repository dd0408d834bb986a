"""Repositories of restic in a folder, with the real program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tools.skipping import machine_lacks

from agentbox.backup.archive.reading import compare
from agentbox.backup.restic.repository import ResticRepository
from agentbox.backup.restic.settings import ResticSettings
from agentbox.core.paths import environment

PASSWORD = "of the repository"
BOX = "lab"  # of the cuts of staged_snapshots


def restic_repository(
    folder: Path, *, password: str = PASSWORD, address: str = "", percent: int = 5
) -> ResticRepository:
    """Of the box of staged snapshots."""
    if shutil.which("restic") is None:
        machine_lacks("restic, which makes its repositories")
    settings = ResticSettings(password=password, verify_percent=percent, repository=address)
    return ResticRepository(folder, settings, BOX)


def restic(folder: Path, *arguments: str) -> str:
    """What restic prints for the repository in a folder of snapshots; fails if it fails."""
    return subprocess.run(
        ["restic", "--repo", folder / "restic", "--no-cache", *arguments],
        env={**environment(), "RESTIC_PASSWORD": PASSWORD},
        capture_output=True,
        check=True,
        text=True,
    ).stdout


def stored_bytes(folder: Path) -> int:
    """Of all files of the repository of restic."""
    return sum(path.stat().st_size for path in (folder / "restic").rglob("*") if path.is_file())


def readable(repository: ResticRepository) -> list[str]:
    """Ids of the snapshots, each read to its end and as it was staged."""
    for head in repository.list():
        with repository.open(head.id, []) as members:
            assert not compare(members, head.members)
    return [head.id for head in repository.list()]
