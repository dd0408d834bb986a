"""Where the snapshots of a box are, as a folder that this machine can read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.core.paths import Paths

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.host.engines.state import BoxRecord, BoxState


def visible_folder(
    folder: str, name: str, state: BoxState, record: BoxRecord | None
) -> Path | None:
    """`backup.folder` of a box on this host; None for a volume of a container engine."""
    from agentbox.host.engines.locations import process_root

    if folder.startswith("/"):
        return Path(folder)
    if record is not None and record.engine != "process":
        return None
    root = Path(record.root) if record is not None else process_root(name, state)
    path = Paths(root).backups
    return path if path.is_dir() else None


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
