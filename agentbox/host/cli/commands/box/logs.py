"""`agentbox logs`: the log of the box, rendered for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.log_line import BOOT, LogLine, parse_time
from agentbox.host.cli.stages.image import plan_for
from agentbox.host.cli.stdio import supports_escapes
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.state import BoxRecord


@click.command(name="logs")
@click.argument("program", required=False)
@click.option("-f", "--follow", is_flag=True, help="Follow the log until Ctrl-C.")
@click.option(
    "--since",
    metavar="WHEN",
    help="Only lines since then: a span (90s, 10m, 2h) or a time (2026-01-31T12:00:00Z).",
)
@click.option(
    "--lines", "-n", type=click.IntRange(min=0), default=None, help="Only the last N lines."
)
@click.pass_obj
def command(
    cli: CliContext, program: str | None, follow: bool, since: str | None, lines: int | None
) -> int:
    """Show the log of the box: boot events and the logs of its programs.

    PROGRAM selects one of them: boot, management-api, gateway, agent-host. For the output of an
    agent see `agentbox task logs TASK`. With --json (before the command) lines are printed
    unchanged.
    """
    moment = _parse_since(since)
    record = cli.running_record()
    _check_program(cli, program)
    try:
        for line in _select_lines(record, program, moment, lines, follow=follow):
            raw = line.raw if not sys.stdout.isatty() else escape_invisible(line.raw)
            click.echo(
                raw if cli.json else line.render(color=cli.color and supports_escapes(sys.stdout))
            )
    except KeyboardInterrupt:
        if not follow:
            raise
    return ExitCode.DONE


def _select_lines(
    record: BoxRecord,
    program: str | None,
    moment: datetime | None,
    count: int | None,
    *,
    follow: bool,
) -> Iterator[LogLine]:
    """The last `count` existing lines, then, with `follow`, all new ones."""
    engine = engine_by_name(record.engine)
    if engine.inspect(record).state == "absent":
        raise AgentboxError(
            f"cannot read the log of the box {record.name}: it was removed",
            "Start it: ./agentbox.sh up",
            exit_code=ExitCode.NOT_RUNNING,
        )

    since = None if moment is None else moment.isoformat()
    if program is None:
        raw_lines = engine.logs(record, follow=follow, lines=count, since=since)
    else:  # last N of one program: count the existing lines first
        raw_lines = engine.logs(record, follow=follow, lines=None, since=since)
        existing = (
            engine.logs(record, follow=False, lines=None, since=since)
            if count is not None
            else iter(())
        )
        skip_count = max(
            0, sum(LogLine.parse(raw).source == program for raw in existing) - (count or 0)
        )
        raw_lines = islice(
            (raw for raw in raw_lines if LogLine.parse(raw).source == program), skip_count, None
        )
    for line in map(LogLine.parse, raw_lines):
        if moment is None or line.is_since(moment):
            yield line


def _parse_since(since: str | None) -> datetime | None:
    try:
        return None if since is None else parse_time(since)
    except ValueError as error:
        raise click.BadParameter(
            f"{since!r} is neither a span (10m) nor a time", param_hint="--since"
        ) from error


def _check_program(cli: CliContext, program: str | None) -> None:
    names = [
        BOOT,
        *(row.name for row in plan_for(cli.load_manifest(), cli.lock, test_hooks=False).programs),
    ]
    if program is not None and program not in names:
        raise click.BadParameter(
            f"unknown program {program!r}; the box has {', '.join(names)}", param_hint="PROGRAM"
        )
