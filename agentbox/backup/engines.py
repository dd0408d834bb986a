"""The engines of repositories, and which one a folder has."""

from collections.abc import Sequence
from pathlib import Path

from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.restic.repository import ResticRepository
from agentbox.backup.restic.settings import ResticSettings


def open_repository(
    folder: Path,
    recipients: Sequence[str] | None,
    restic: ResticSettings | None,
    box: str = "",
) -> ArchiveRepository | ResticRepository:
    """A repository of restic if `restic` is given, else one of archives. `recipients` and `box` as
    for these.
    """
    if restic is None:
        return ArchiveRepository(folder, recipients)
    return ResticRepository(folder, restic, box)
