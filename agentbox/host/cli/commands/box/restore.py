"""`agentbox restore`: a new state of a snapshot, and the box on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.engines.registry import ENGINE_NAMES

if TYPE_CHECKING:
    from agentbox.host.cli.stages.restore import Restored
    from agentbox.host.restore.source import Source


@click.command(name="restore")
@click.argument("snapshot", metavar="[ID|latest|FILE]", default="latest")
@click.option("--dry-run", is_flag=True, help="Read and check the snapshot; change nothing.")
@click.option(
    "--into",
    metavar="NAME",
    default="",
    help="Make another box of it: NAME is that of the manifest, and has no state yet.",
)
@click.option(
    "--repository",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with snapshots, such as those of another box or a copy.",
)
@click.option(
    "--identity",
    metavar="FILE|-",
    default="",
    help="The age or ssh-ed25519 identity that opens it; - reads it from stdin.",
)
@click.option("--keep-tokens", is_flag=True, help="Let named tokens work as they did then.")
@click.option(
    "--engine",
    "engine_name",
    type=click.Choice(ENGINE_NAMES),
    default="auto",
    show_default=True,
    help="The engine of a box that does not exist yet.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(
    cli: CliContext,
    snapshot: str,
    dry_run: bool,
    into: str,
    repository: Path | None,
    identity: str,
    keep_tokens: bool,
    engine_name: str,
    yes: bool,
) -> None:
    """Bring back the state of a snapshot: beads, pods, memory, journal, agents and reviews.

    The snapshot is read, checked and unpacked into new volumes while the box still runs. Then the
    box stops and starts on them; if it does not get ready, the old state runs again. The old state
    is kept as a generation.

    Named tokens come back disabled, agents that ran are lost, and what was spent stays spent.
    """
    from agentbox.host.backups.identity import read_identities
    from agentbox.host.cli.stages.restore import RestoreRequest, restore
    from agentbox.host.generations.store import GenerationStore
    from agentbox.host.restore.source import found_source

    box = cli.load_manifest().usable.meta.name
    if into and into != box:
        raise AgentboxError(
            f"cannot restore into {into}: {cli.manifest} names {box}",
            f"Give a manifest of that box: agentbox --manifest FILE restore --into {into}",
            exit_code=ExitCode.USAGE,
        )
    if into and repository is None and not Path(snapshot).is_file():
        raise AgentboxError(
            f"cannot restore {snapshot} into {into}: its repository has none of another box",
            "Give the snapshot as a file, or the folder it is in: --repository DIR. `agentbox "
            "backup export` makes a file of a snapshot.",
            exit_code=ExitCode.USAGE,
        )
    record = cli.find_record()
    last = GenerationStore(cli.state()).current()
    if record is not None:
        engine = record.engine
    else:
        engine = last.engine if last is not None and engine_name == "auto" else engine_name
    with found_source(cli, snapshot, engine, box, repository) as source:
        identities = read_identities(identity or None)
        _check_head(cli, source, box, into)
        with cli.out.stage("verify") as stage:
            source.verify()
            stage.result = source.name
        if dry_run:
            _show(cli, source, _read_through(source, identities))
            return
        if not yes:
            _confirm(source, box)
        request = RestoreRequest(
            source=source,
            identities=identities,
            box=box,
            other_box=bool(into),
            keep_tokens=keep_tokens,
            engine_name=engine_name,
            yes=yes,
        )
        with cli.state().exclusive_lock():
            restored = restore(cli, request)
    _print_restored(cli, restored)


def _check_head(cli: CliContext, source: Source, box: str, into: str) -> None:
    """Raises AgentboxError: exit 1 for a snapshot of a newer release, 2 for one of another box."""
    from agentbox.host.cli.stages.restore import other_box_error
    from agentbox.restoring.release import check_release

    if source.head is None:
        return
    check_release(source.name, source.head.release)
    if source.head.box != box and not into:
        raise other_box_error(cli.manifest, source.name, source.head.box, box)


def _read_through(source: Source, identities: list[object]) -> tuple[int, int]:
    """Reads every member; returns files and bytes. Raises AgentboxError for damage."""
    files = size = 0
    with source.members(identities) as members:
        if source.head is not None:
            from agentbox.backup.archive.reading import compare

            for fault in compare(members, source.head.members):
                raise AgentboxError(
                    f"cannot restore {source.name}: {fault}",
                    "Take another snapshot, or another copy of the repository.",
                )
            rows = source.head.members
            return len(rows), sum(row.size for row in rows)
        for member in members:
            files += member.kind == "file"
            size += member.size
    return files, size


def _show(cli: CliContext, source: Source, totals: tuple[int, int]) -> None:
    files, size = totals
    head = source.head
    cli.out.document(
        {
            "snapshot": source.name,
            "files": files,
            "bytes": size,
            "head": None if head is None else {**head.to_wire(), "members": files},
        }
    )
    cli.out.line(f"{source.name} can be restored: {files} files, {size} bytes")
    if head is not None:
        cli.out.line(f"of {head.box}, {head.time:%Y-%m-%d %H:%M} UTC, release {head.release}")
        if head.partial:
            cli.out.line(f"not in it, since they were down: {', '.join(head.partial)}")


def _confirm(source: Source, box: str) -> None:
    when = "" if source.head is None else f" of {source.head.time:%Y-%m-%d %H:%M} UTC"
    partial = () if source.head is None else source.head.partial
    without = f", which lacks {', '.join(map(escape_invisible, partial))}" if partial else ""
    name = escape_invisible(source.name)
    asked = f"Replace the state of {box} by the snapshot {name}{when}{without}?"
    if not (sys.stdin.isatty() and click.confirm(asked, default=False, err=True)):
        raise AgentboxError(
            f"cannot restore {source.name}: not confirmed", "Give --yes.", exit_code=ExitCode.USAGE
        )


def _print_restored(cli: CliContext, restored: Restored) -> None:
    state, record = restored.state, restored.record
    cli.out.document(
        {
            **state.to_wire(),
            "name": record.name,
            "url": record.api_url,
            "generation": restored.generation,
            "budgets_kept": restored.budgets_kept,
        }
    )
    cli.out.line(
        f"restored {state.snapshot} into {record.name}: {record.api_url}, generation "
        f"{restored.generation}"
    )
    if restored.budgets_kept:
        cli.out.line(f"budgets are those of the snapshot: {restored.budgets_kept}")
    if state.tokens_disabled:
        cli.out.line(f"named tokens that were disabled: {state.tokens_disabled}")
    if state.agents_ended:
        cli.out.line(f"agents that ran then and are lost now: {state.agents_ended}")
    if state.partial:
        cli.out.line(f"not restored, since they were down at the cut: {', '.join(state.partial)}")
    if state.left:
        cli.out.line(f"in the snapshot, but in no volume of the box: {', '.join(state.left)}")
