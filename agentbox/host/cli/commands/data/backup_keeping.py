"""`agentbox backup prune` and `agentbox backup export`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.commands.data.backup_sources import (
    find_repository,
    identity_option,
    repository_option,
    snapshot_here,
)
from agentbox.host.cli.commands.data.backup_text import format_head
from agentbox.host.cli.context import CliContext

if TYPE_CHECKING:
    from agentbox.contracts.backups import Snapshot


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would be removed; remove nothing.")
@repository_option
@click.pass_obj
def prune(cli: CliContext, dry_run: bool, repository: Path | None) -> None:
    """Remove the snapshots that no rule of the manifest keeps (backup.keep, keep_daily, ...).

    The newest is verified first. The box does the same after each backup.
    """
    from agentbox.backup.retention import Policy

    found = find_repository(cli, repository, writes=True)
    table = cli.load_manifest().usable.backup
    policy = Policy(table.keep, table.keep_daily, table.keep_weekly, table.keep_monthly)
    gone: Sequence[Snapshot] = ()
    if found is not None and (heads := found.list()):
        newest = heads[-1].id
        if not dry_run and (faults := found.verify(newest)):
            raise AgentboxError(
                f"cannot prune: the newest snapshot is damaged: {faults[0]}",
                "Nothing was removed. Make another with `agentbox backup create`.",
            )
        gone = found.prune(policy, verified=newest, dry_run=dry_run)
    cli.out.document({"removed": [head.id for head in gone], "dry_run": dry_run})
    for head in gone:
        cli.out.line(f"{'would remove' if dry_run else 'removed'} {format_head(head)}")
    if not gone:
        cli.out.line("nothing to remove")


@click.command()
@click.argument("id")
@click.option("--out", "file", default="-", metavar="FILE", help="Write to FILE. [default: stdout]")
@click.option("--plain", is_flag=True, help="Decrypt: a tar of the files themselves.")
@identity_option
@repository_option
@click.pass_obj
def export(
    cli: CliContext,
    id: str,
    file: str,
    plain: bool,
    identity: str | None,
    repository: Path | None,
) -> None:
    """Copy a snapshot into one file: its archive, encrypted as it is stored.

    `agentbox restore FILE` takes it, and `age -d -i IDENTITY FILE | zstd -d | tar x` opens it. With
    --plain it is a tar of the files. ID may be `latest`.
    """
    from agentbox.backup.export import file_chunks, plain_chunks
    from agentbox.host.backups.identity import read_identities
    from agentbox.host.cli.transfer import write_output

    if identity is not None and not plain:
        raise click.UsageError("--identity requires --plain; otherwise it stays encrypted")
    identities = read_identities(identity)
    with ExitStack() as stack:
        source, id = snapshot_here(cli, stack, find_repository(cli, repository), id)
        head = source.get(id)
        if not plain and head.engine == "restic":
            raise AgentboxError(
                f"cannot export {head.id}: restic has no file for each snapshot",
                "Give --plain: a tar of the files, not encrypted. `restic copy` copies a snapshot "
                "into another repository.",
                exit_code=ExitCode.USAGE,
            )
        if faults := source.verify(head.id):
            raise AgentboxError(
                f"cannot export {head.id}: {faults[0]}", "Take another snapshot or another copy."
            )
        if plain:
            write_output(file, plain_chunks(stack.enter_context(source.open(head.id, identities))))
        else:
            write_output(file, file_chunks(source.folder / head.archive))
    if file != "-":
        cli.out.document({"id": head.id, "file": file, "plain": plain})
        cli.out.line(f"wrote {head.id} to {file}")


VERBS = (prune, export)
