"""The repository of a box as this host opens it: archives in a folder, or restic with its
password.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import temporary_prefix

if TYPE_CHECKING:
    from agentbox.backup.archive.repository import ArchiveRepository
    from agentbox.backup.restic.repository import ResticRepository
    from agentbox.backup.restic.settings import ResticSettings
    from agentbox.host.cli.context import CliContext


def restic_settings(cli: CliContext) -> ResticSettings | None:
    """Of the manifest, with secrets from where `up` takes them; None for archives. Raises
    BackupError (exit 2) for a secret that is not set.
    """
    table = cli.load_manifest().usable.backup
    if table.engine != "restic":
        return None
    from agentbox.backup.restic.settings import read_settings
    from agentbox.host.engines.secrets import collect_secrets
    from agentbox.plan.backup_table import RESTIC_KEYS

    names = (table.password_env, table.ssh_key_env, *table.credentials)
    secrets = collect_secrets(
        [name for name in names if name], cli.manifest, cli.state().secrets_dir
    )
    return read_settings({key: getattr(table, key) for key in RESTIC_KEYS}, secrets.get)


def repository_in(cli: CliContext, folder: Path) -> ArchiveRepository | ResticRepository:
    """A folder, such as a copy of that of the box. Raises BackupError."""
    from agentbox.backup.engines import open_repository
    from agentbox.backup.restic.command import FOLDER

    settings = restic_settings(cli) if (folder / FOLDER).is_dir() else None
    return open_repository(folder, (), replace(settings, repository="") if settings else None)


def repository_of_box(
    cli: CliContext, locate: Callable[[], Path], *, writes: bool = False
) -> ArchiveRepository | ResticRepository:
    """`locate` finds the folder of the box. Where that is not here, or has no snapshot, those of a
    remote repository are listed into a temporary folder, for what only reads. Raises AgentboxError.
    """
    from agentbox.backup.engines import open_repository
    from agentbox.backup.restic.repository import ResticRepository

    settings, box = restic_settings(cli), cli.load_manifest().usable.meta.name
    is_remote = settings is not None and settings.address is not None
    try:
        found = open_repository(locate(), (), settings, box)
        if writes or not is_remote or found.list():
            return found
    except AgentboxError:
        if writes or not is_remote:
            raise
    assert settings is not None, "it is remote"
    elsewhere = ResticRepository(_temporary_folder(), settings)
    elsewhere.find()
    return elsewhere


def _temporary_folder() -> Path:
    """Until the command ends."""
    import click

    folder = tempfile.TemporaryDirectory(prefix=temporary_prefix("backup"))
    return Path(click.get_current_context().with_resource(folder))
