"""`agentbox reset`: the box as after its first boot, with a way back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext

if TYPE_CHECKING:
    from agentbox.host.cli.stages.reset import Reset


@click.command(name="reset")
@click.option(
    "--keep",
    metavar="LIST",
    default="",
    help="What stays, separated by commas: identities (in the mesh), secrets (admin token, keys "
    "and passwords of the box), backups (the snapshots).",
)
@click.option("--no-backup", is_flag=True, help="Make no backup first.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask; with backups set up, make one.")
@click.pass_obj
def command(cli: CliContext, keep: str, no_backup: bool, yes: bool) -> None:
    """Start the box anew: with the same image and manifest, and as after its first boot.

    Beads, pods, memory, the journal, agents, named tokens, workspace and snapshots stay in the old
    volumes, which wait as a generation: `agentbox rollback` brings them back, and `agentbox
    generations prune N` removes them. A project directory, a `backup.folder` and secrets of
    `agentbox secrets` are not the box's, and stay.

    Where backups are set up, one is made first, unless --no-backup. If the new state does not get
    ready, the old one runs again.
    """
    from agentbox.host.cli.stages.reset import reset
    from agentbox.host.cli.stages.trial_end import finish_trial

    kept = _parse_kept(keep)
    name = cli.load_manifest().usable.meta.name
    if not yes:
        _confirm(name, kept)
    with cli.state().exclusive_lock():
        finish_trial(cli)
        backup = "" if no_backup else _backup(cli, yes=yes)
        done = reset(cli, kept, yes=yes)
    _report(cli, done, kept, backup)


def _parse_kept(text: str) -> tuple[str, ...]:
    """In the order of `KEPT`. Raises AgentboxError (exit 2) for an unknown word."""
    from agentbox.host.cli.stages.reset import KEPT

    words = [word.strip() for word in text.split(",")] if text else []
    for word in words:
        if word not in KEPT:
            raise AgentboxError(
                f"cannot keep {word!r}: no part of a box has that name",
                f"--keep takes {', '.join(KEPT)}, separated by commas.",
                exit_code=ExitCode.USAGE,
            )
    return tuple(word for word in KEPT if word in words)


def _confirm(name: str, kept: tuple[str, ...]) -> None:
    without = f", all but {', '.join(kept)}" if kept else ""
    asked = f"Start {name} anew, and put its data aside{without}?"
    if not (sys.stdin.isatty() and click.confirm(asked, default=False, err=True)):
        raise AgentboxError(
            f"cannot reset {name}: not confirmed", "Give --yes.", exit_code=ExitCode.USAGE
        )


def _backup(cli: CliContext, *, yes: bool) -> str:
    """The id of the backup before it; "" with a note if none can be made, or none is wanted."""
    from agentbox.host.cli.stages.first_backup import backups_are_set_up, make_backup
    from agentbox.host.cli.stages.rollback import runs
    from agentbox.host.generations.store import GenerationStore

    if not backups_are_set_up(cli):
        cli.out.note("no backup before this reset: none is set up (agentbox backup init)")
    elif not runs(GenerationStore(cli.state()).current()):
        cli.out.note("no backup before this reset: the box does not run")
    elif yes or click.confirm("Make a backup first?", default=True, err=True):
        return make_backup(cli, "reset")
    return ""


def _report(cli: CliContext, done: Reset, kept: tuple[str, ...], backup: str) -> None:
    cli.out.document(
        {
            "name": done.record.name,
            "url": done.record.api_url,
            "generation": done.generation,
            "previous": done.previous,
            "kept": list(kept),
            "backup": backup or None,
        }
    )
    cli.out.line(
        f"{done.record.name} is as after its first boot: {done.record.api_url}, generation "
        f"{done.generation}"
    )
    cli.out.line(
        f"the old data wait as generation {done.previous}: agentbox rollback {done.previous} "
        f"brings them back, agentbox generations prune {done.previous} removes them"
    )
    if backup and "backups" not in kept:
        cli.out.line(f"the backup {backup} is with them; --keep backups would have left it here")
