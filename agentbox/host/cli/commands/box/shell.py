"""`agentbox shell`: runs a program in the box as its own user, for inspection."""

from __future__ import annotations

import sys

import click

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.context import CliContext
from agentbox.host.engines.registry import engine_by_name

EXIT_AGENTBOX_FAILED = 125  # as `run`: smaller codes may be the command's own


@click.command(name="shell", context_settings={"allow_interspersed_args": False})
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
@click.pass_obj
def command(cli: CliContext, argv: tuple[str, ...]) -> int:
    """Open a shell in the box as its own user (uid 1000), or run CMD there, for inspection.

    This is not an agent: no bead, no journal, no limits. Returns the exit code of the command, or
    125 if agentbox itself failed.
    """
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        record = cli.running_record()
        engine = engine_by_name(record.engine)
        if (state := engine.inspect(record).state) != "running":
            raise AgentboxError(
                f"cannot enter the box {record.name}: it is not running (it is {state})",
                "Start it: ./agentbox.sh up",
            )
    except AgentboxError as error:
        cli.out.report_error(error)
        return EXIT_AGENTBOX_FAILED
    return engine.execute(record, argv or ("/bin/bash", "-l"), terminal=terminal)
