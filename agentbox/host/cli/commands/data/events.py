"""`agentbox events`: the journal of the box, or a journal directory."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.commands.data.event_reading import read_from_box, read_newest
from agentbox.host.cli.commands.data.event_search import VERBS
from agentbox.host.cli.context import CliContext

DIRECTORY = click.Path(path_type=Path, file_okay=False)


def _parse_anchor(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> tuple[int, str] | None:
    """Parses SEQ:HASH, a trusted record."""
    if value is None:
        return None
    seq, _, digest = value.partition(":")
    if not seq.isdecimal() or len(digest) != 64:
        raise click.BadParameter("must be a record number, a colon and 64 hex digits")
    return int(seq), digest


def _parse_before(_ctx: click.Context, _param: click.Parameter, value: str) -> int | str:
    """Parses a record number or a day."""
    if value.isdecimal():
        return int(value)
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise click.BadParameter("must be a record number or a day such as 2026-01-31") from None


@click.group(name="events")
def command() -> None:
    """Read the journal: events of the box in order, each record chained to its predecessor.

    `journal` is another name of this command.
    """


for verb in VERBS:
    command.add_command(verb)


@command.command()
@click.option(
    "-n",
    "count",
    type=click.IntRange(0, 1000),
    default=20,
    show_default=True,
    help="Number of newest events.",
)
@click.option("-f", "--follow", is_flag=True, help="Follow events until Ctrl-C.")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="T",
    help="Only this type, or prefix.*; may be repeated.",
)
@click.pass_obj
def tail(cli: CliContext, count: int, follow: bool, types: tuple[str, ...]) -> None:
    """Show the newest events.

    With --json each event is one line of JSON.
    """
    query = {"types": ",".join(types) or None}
    with cli.client() as client:
        head = int(client.call("head_event")["seq"])
        for event in read_newest(client, query, head, count):
            _print_event(cli, event)
        if follow:
            for message in client.stream(
                "stream_events", query=query, since=str(head) if head >= 0 else ""
            ):
                _print_event(cli, json.loads(message.data))


@command.command()
@click.argument("seq", type=click.IntRange(0))
@click.pass_obj
def show(cli: CliContext, seq: int) -> None:
    """Show one complete record by its number."""
    with cli.client() as client:
        event = client.call("show_event", {"seq": str(seq)})
    cli.out.document(event)
    cli.out.block(json.dumps(event, indent=2, ensure_ascii=False))


@command.command()
@click.argument("directory", type=DIRECTORY, required=False)
@click.option(
    "--anchor",
    metavar="SEQ:HASH",
    callback=_parse_anchor,
    help="A trusted record; detects a truncated tail.",
)
@click.pass_obj
def verify(cli: CliContext, directory: Path | None, anchor: tuple[int, str] | None) -> int:
    """Verify the journal of the running box, or a journal DIRECTORY (needs no box, no manifest).

    Checks every record, link and seal. Exit 1 with file, line and record if something was edited,
    removed, inserted, moved or spliced. A tail truncated at a record boundary is detected with
    DIRECTORY and --anchor only.
    """
    from agentbox.adapters.events.journal.verify import verify as check

    if directory is None and anchor is not None:
        raise click.UsageError("--anchor requires DIRECTORY")
    report = (
        check(directory, anchor=anchor).to_wire() if directory is not None else _verify_in_box(cli)
    )
    cli.out.document(report)
    if (error := report["error"]) is not None:
        location = f"{error['file']}:{error['line']}" if error["line"] else error["file"]
        record = "" if error["seq"] is None else f", record {error['seq']}"
        cli.out.line(f"damaged: {location}{record}: {error['reason']}")
        return ExitCode.BAD
    records = (
        "no record"
        if report["last_seq"] < 0
        else f"records {report['first_seq']} to {report['last_seq']}"
    )
    cli.out.line(f"sound: {records}, tail {report['last_seq']}:{report['tail_hash']}")
    return ExitCode.DONE


def _verify_in_box(cli: CliContext) -> Mapping[str, Any]:
    with cli.client() as client:
        report: Mapping[str, Any] = client.call("verify_events", body={})
    return report


@command.command()
@click.argument("directory", type=DIRECTORY, required=False)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["jsonl", "cloudevents"]),
    default="jsonl",
    show_default=True,
    help="Stored lines, or CloudEvents 1.0.",
)
@click.option(
    "--since",
    type=click.IntRange(-1),
    default=-1,
    metavar="SEQ",
    help="Only records after this one.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="T",
    help="Only this type, or prefix.*; may be repeated.",
)
@click.pass_obj
def export(
    cli: CliContext, directory: Path | None, output_format: str, since: int, types: tuple[str, ...]
) -> None:
    """Write the records of the running box, or of a journal DIRECTORY, to stdout as JSON lines.

    A directory is verified first; a damaged one writes nothing. Ends with the record that is newest
    at the start.
    """
    import rfc8785

    from agentbox.adapters.events.cloudevents import cloud_event
    from agentbox.adapters.events.journal.export import read_events
    from agentbox.contracts.events import EventFilter
    from agentbox.core.canonical import canonical_json

    event_filter = EventFilter(types=types)
    for event in (
        read_events(directory, since=since) if directory is not None else read_from_box(cli, since)
    ):
        if event_filter.matches(event):
            line = (
                rfc8785.dumps(event.to_wire())
                if output_format == "jsonl"
                else canonical_json(cloud_event(event))
            )
            text = line.decode()
            print(escape_invisible(text) if sys.stdout.isatty() else text)


@command.command()
@click.argument("directory", type=DIRECTORY)
@click.option(
    "--before",
    required=True,
    metavar="SEQ|DAY",
    callback=_parse_before,
    help="Keep records from this number or UTC day on.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, without removing it.")
@click.pass_obj
def prune(cli: CliContext, directory: Path, before: int | str, dry_run: bool) -> None:
    """Remove sealed segments that end before a record or a day (YYYY-MM-DD).

    The box must be down and the journal valid. The new start is written to anchor.json, so that the
    rest still verifies.
    """
    from agentbox.adapters.events.journal.prune import prune as remove

    if not directory.is_dir():
        raise AgentboxError(
            f"cannot prune {directory}: no such directory", exit_code=ExitCode.USAGE
        )
    seq, day = (before, None) if isinstance(before, int) else (None, before)
    first, removed = remove(directory, before_seq=seq, before_day=day, dry_run=dry_run)
    cli.out.document({"first_seq": first, "removed": removed, "dry_run": dry_run})
    for name in removed:
        cli.out.line(f"{'would remove' if dry_run else 'removed'} {name}")
    cli.out.line(f"the journal {'would begin' if dry_run else 'begins'} at record {first}")


@command.command()
@click.option(
    "-n",
    "count",
    type=click.IntRange(0, 1000),
    default=20,
    show_default=True,
    help="Number of dead letters.",
)
@click.pass_obj
def delivery(cli: CliContext, count: int) -> int:
    """Show the delivery progress to the event sink and the dead letters, newest first.

    Exit 1 while an operator must act: a refused token, an unknown address.
    """
    with cli.client() as client:
        report = client.call("event_delivery", query={"limit": count})
    cli.out.document(report)
    if not report["sink"]:
        cli.out.line("the journal stays in this box: adapters.events.use is not external-http")
        return ExitCode.DONE
    backlog = (
        f"{report['undelivered']} pending, the oldest for {report['oldest_s']:.0f} s"
        if report["undelivered"]
        else "none pending"
    )
    cli.out.line(
        f"delivered up to record {report['cursor']}; {backlog}; {report['dead']} dead letters"
    )
    if report["trouble"]:
        cli.out.line(f"{'held' if report['held'] else 'retrying'}: {report['trouble']}")
    for letter in report["letters"]:
        cli.out.line(f"{letter['seq']:>8}  {letter['at']}  {letter['type']:<28} {letter['reason']}")
    return ExitCode.BAD if report["held"] else ExitCode.DONE


def _print_event(cli: CliContext, event: Mapping[str, Any]) -> None:
    if cli.json:
        cli.out.row(event)
        return
    subject = event["subject"] or event["agent_id"] or ""
    data = json.dumps(event["data"], ensure_ascii=False, sort_keys=True)
    cli.out.line(f"{event['seq']:>8}  {event['ts']}  {event['type']:<28} {subject} {data}")
