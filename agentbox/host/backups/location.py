"""Where the snapshots of a box are, as a folder that this machine can read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError, ExitCode

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.host.cli.context import CliContext
    from agentbox.host.engines.state import BoxRecord


def folder_of_box(cli: CliContext, record: BoxRecord | None) -> Path:
    """The folder with the snapshots of a box, as this host sees it. Raises AgentboxError: exit 2 if
    there is none, 3 if it cannot be read.
    """
    from agentbox.host.engines.locations import process_root
    from agentbox.host.restore.source import repository_folder

    name = cli.load_manifest().usable.meta.name
    engine = record.engine if record is not None else ""
    if not engine:
        has_root = process_root(name, cli.state()).is_dir()
        engine = "process" if has_root else "docker"
    folder = repository_folder(cli, engine, name)
    if not folder.is_dir():
        raise AgentboxError(
            f"cannot read the repository {folder}: there is no such folder",
            "`agentbox backup create` makes it, once the box runs.",
            exit_code=ExitCode.USAGE,
        )
    return folder


@contextmanager
def downloaded(client: BoxClient, id: str) -> Iterator[Path]:
    """A repository of one snapshot, copied from the box: head and archive, as they are stored.
    Raises ApiError, BackupError; OSError of the temporary folder.
    """
    from agentbox.backup.export import import_export
    from agentbox.client.transport import build_call

    with tempfile.TemporaryDirectory(prefix="agentbox-backup-") as name:
        folder = Path(name)
        call = build_call("backup_archive", {"id": id}, headers={"Accept": "*/*"})
        with client.streaming(call) as response, (folder / "export").open("w+b") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
            file.seek(0)
            repository = folder / "repository"
            repository.mkdir()
            import_export(file, repository)
        (folder / "export").unlink()
        yield repository
