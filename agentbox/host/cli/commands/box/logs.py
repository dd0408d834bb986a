"""`agentbox logs`: what the box prints, rendered for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible import visible
from agentbox.host.cli.context import Cli
from agentbox.host.cli.logview import BOOT, Line, moment_of
from agentbox.host.cli.stages.image import plan_of
from agentbox.host.cli.streams import draws
from agentbox.host.engines.named import engine_named
from agentbox.host.engines.state import BoxRecord


@click.command(name="logs")
@click.argument("program", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come; Ctrl-C ends it.")
@click.option(
    "--since", metavar="WHEN", help="Only from then on: a span (90s, 10m, 2h) or a time (2026-01-31T12:00:00Z)."
)
@click.option("--lines", "-n", type=click.IntRange(min=0), default=None, help="Only the last N.")
@click.pass_obj
def command(cli: Cli, program: str | None, follow: bool, since: str | None, lines: int | None) -> int:
    """Show what the box printed: the events of its boot and the log of its programs.

    PROGRAM shows one of them only: boot, management-api, gateway, agent-host. The output of an agent is elsewhere:
    `agentbox task logs TASK`. With --json (before the verb) the lines come as the box wrote them.
    """
    moment = _moment(since)
    record = cli.running_record()
    _known(cli, program)
    try:
        for line in _chosen(record, program, moment, lines, follow=follow):
            as_it_came = line.raw if not sys.stdout.isatty() else visible(line.raw)
            click.echo(as_it_came if cli.json else line.for_people(color=cli.color and draws(sys.stdout)))
    except KeyboardInterrupt:
        if not follow:
            raise
    return ExitCode.DONE


def _chosen(
    record: BoxRecord, program: str | None, moment: datetime | None, count: int | None, *, follow: bool
) -> Iterator[Line]:
    """The lines asked for: the last `count` of what is there, then, with `follow`, all that come."""
    engine = engine_named(record.engine)
    if engine.inspect(record).state == "absent":
        raise AgentboxError(
            f"cannot read the log of the box {record.name}: it was removed",
            "Start it: ./agentbox.sh up",
            exit_code=ExitCode.NOT_RUNNING,
        )

    since = None if moment is None else moment.isoformat()
    if program is None:
        raws = engine.logs(record, follow=follow, lines=count, since=since)
    else:  # the last N of one program: what is there is counted first
        raws = engine.logs(record, follow=follow, lines=None, since=since)
        old = engine.logs(record, follow=False, lines=None, since=since) if count is not None else iter(())
        skipped = max(0, sum(Line.of(raw).source == program for raw in old) - (count or 0))
        raws = islice((raw for raw in raws if Line.of(raw).source == program), skipped, None)
    for line in map(Line.of, raws):
        if moment is None or line.since(moment):
            yield line


def _moment(since: str | None) -> datetime | None:
    try:
        return None if since is None else moment_of(since)
    except ValueError as error:
        raise click.BadParameter(f"{since!r} is neither a span (10m) nor a time", param_hint="--since") from error


def _known(cli: Cli, program: str | None) -> None:
    names = [BOOT, *(row.name for row in plan_of(cli.load_manifest(), cli.lock, test_hooks=False).programs)]
    if program is not None and program not in names:
        raise click.BadParameter(f"the box has no program {program!r}; it has {', '.join(names)}", param_hint="PROGRAM")
