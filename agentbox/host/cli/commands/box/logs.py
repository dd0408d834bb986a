"""`agentbox logs`: what the box prints, rendered for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.log_line import BOOT, LogLine, parse_time
from agentbox.host.cli.stages.image import plan_for
from agentbox.host.cli.stdio import supports_escapes
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.state import BoxRecord


@click.command(name="logs")
@click.argument("program", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come; Ctrl-C ends it.")
@click.option(
    "--since",
    metavar="WHEN",
    help="Only from then on: a span (90s, 10m, 2h) or a time (2026-01-31T12:00:00Z).",
)
@click.option("--lines", "-n", type=click.IntRange(min=0), default=None, help="Only the last N.")
@click.pass_obj
def command(
    cli: CliContext, program: str | None, follow: bool, since: str | None, lines: int | None
) -> int:
    """Show what the box printed: the events of its boot and the log of its programs.

    PROGRAM shows one of them only: boot, management-api, gateway, agent-host. The output of an agent is elsewhere:
    `agentbox task logs TASK`. With --json (before the verb) the lines come as the box wrote them.
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
    """The lines asked for: the last `count` of what is there, then, with `follow`, all that come."""
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
    else:  # the last N of one program: what is there is counted first
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
            f"the box has no program {program!r}; it has {', '.join(names)}", param_hint="PROGRAM"
        )
