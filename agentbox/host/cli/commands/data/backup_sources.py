"""Where the verbs of `agentbox backup` find snapshots: the running box, or a folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext

if TYPE_CHECKING:
    from agentbox.backup.repository import Repository
    from agentbox.client import BoxClient
    from agentbox.contracts.backups import Backup

_EXIT_CODES: Final = {
    "backup-running": ExitCode.BUSY,
    "backup-busy": ExitCode.BUSY,
    "backup-not-set-up": ExitCode.USAGE,
    "quota-exceeded": ExitCode.PREREQUISITE,
    "backup-unusable": ExitCode.PREREQUISITE,
}


def repository_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--repository",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIRECTORY",
        help="A folder with snapshots, such as a copy. [default: that of the box]",
    )(function)


def identity_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--identity", metavar="FILE", help="Who can read the snapshot; - reads it from stdin."
    )(function)


def find_repository(
    cli: CliContext, given: Path | None, *, writes: bool = False
) -> Repository | None:
    """The repository as a folder: the given one, else that of a box that does not run. None for a
    running box, which is asked; for what writes, its folder too. Raises AgentboxError (exit 2, 8).
    """
    from agentbox.host.backups.location import folder_of_box
    from agentbox.host.backups.repository import repository_in, repository_of_box

    if given is not None:
        if not given.is_dir():
            raise AgentboxError(
                f"cannot read the repository {given}: there is no folder of that name",
                "Give the folder that holds the snapshots, or leave --repository out.",
                exit_code=ExitCode.USAGE,
            )
        return repository_in(cli, given)
    record = cli.find_record()
    if record is not None and not writes:
        return None
    return repository_of_box(cli, lambda: folder_of_box(cli, record), writes=writes)


def snapshot_here(
    cli: CliContext, stack: ExitStack, found: Repository | None, id: str
) -> tuple[Repository, str]:
    """The repository, or one snapshot of the running box in a temporary folder, and its id. What
    the box cannot send, a snapshot of restic, is read where it is.
    """
    from agentbox.backup.archive.repository import ArchiveRepository
    from agentbox.host.backups.location import downloaded, folder_of_box
    from agentbox.host.backups.repository import repository_of_box

    if found is not None:
        return found, id
    if cli.load_manifest().usable.backup.engine == "restic":
        return repository_of_box(cli, lambda: folder_of_box(cli, cli.find_record())), id
    client = stack.enter_context(cli.client())
    id = resolve_latest(client, id)
    return ArchiveRepository(stack.enter_context(downloaded(client, id)), ()), id


def resolve_latest(client: BoxClient, id: str) -> str:
    """The id of the newest complete snapshot for `latest`. Raises AgentboxError without one."""
    if id != "latest":
        return id
    if stored := stored_ids(client):
        return stored[0]
    raise AgentboxError("cannot find a snapshot: there is none", "Run `agentbox backup create`.")


def stored_ids(client: BoxClient) -> list[str]:
    """Ids of the complete snapshots, newest first."""
    items = client.backups.list().items
    return [row.id for row in items if row.state == "created" and not row.partial]


def create_backup(client: BoxClient, tag: str) -> Backup:
    """Begins a backup. Raises ApiError: exit 7 while another one runs or writes cannot be paused,
    exit 2 without recipients, exit 3 without room or a usable repository.
    """
    from agentbox.client import ApiError

    try:
        return client.backups.create(tag=tag)
    except ApiError as error:
        error.exit_code = _EXIT_CODES.get(error.code, error.exit_code)
        raise
