"""`agentbox shell`: a program in the box as its own user, for inspection."""

from __future__ import annotations

import sys

import click

from agentbox.cli.context import Cli
from agentbox.engine.choose import engine_named


@click.command(name="shell", context_settings={"ignore_unknown_options": True})
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(cli: Cli, argv: tuple[str, ...]) -> int:
    """Open a shell in the box as uid 1000, or run ARGV there (after `--`). Returns its exit code."""
    record = cli.state().running_record()
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return engine_named(record.engine).execute(record, argv or ("/bin/bash", "-l"), terminal=terminal)
