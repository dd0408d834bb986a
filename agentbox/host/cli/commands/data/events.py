"""`agentbox events`: the journal of the box, and journals as folders."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible import visible
from agentbox.host.cli.context import Cli

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.events import Event

_EXPIRED = 410  # records that the journal does not keep any more
_STEP = 10_000  # records, which the box looks at in one call
DIRECTORY = click.Path(path_type=Path, file_okay=False)


def _anchor(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, str] | None:
    """SEQ:HASH of a record known from elsewhere."""
    if value is None:
        return None
    seq, _, digest = value.partition(":")
    if not seq.isdecimal() or len(digest) != 64:
        raise click.BadParameter("must be a record number, a colon and 64 hex digits")
    return int(seq), digest


def _before(_ctx: click.Context, _param: click.Parameter, value: str) -> int | str:
    """A record number, or a day."""
    if value.isdecimal():
        return int(value)
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise click.BadParameter("must be a record number or a day such as 2026-01-31") from None


@click.group(name="events")
def command() -> None:
    """The journal: what happened in the box, in order, each record chained to the one before."""


@command.command()
@click.option(
    "-n", "count", type=click.IntRange(0, 1000), default=20, show_default=True, help="How many of the newest."
)
@click.option("-f", "--follow", is_flag=True, help="Go on as events come, until Ctrl-C.")
@click.option("--type", "types", multiple=True, metavar="T", help="Only this type, or prefix.*; may be repeated.")
@click.pass_obj
def tail(cli: Cli, count: int, follow: bool, types: tuple[str, ...]) -> None:
    """Show the newest events.

    With --json each event is one line of JSON.
    """
    query = {"types": ",".join(types) or None}
    with cli.client() as client:
        head = int(client.call("head_event")["seq"])
        for event in _newest(client, query, head, count):
            _say(cli, event)
        if follow:
            for sent in client.stream("stream_events", query=query, since=str(head) if head >= 0 else ""):
                _say(cli, json.loads(sent.data))


def _newest(client: BoxClient, query: Mapping[str, Any], last: int, count: int) -> list[dict[str, Any]]:
    """The newest `count` that match up to the record `last`, oldest first. Reads back from the end, in steps that grow."""
    from agentbox.client import ApiError

    found: list[dict[str, Any]] = []
    step, oldest = count, 0
    while len(found) < count and last >= oldest:
        since = max(oldest - 1, last - step)
        try:
            found = [*_between(client, query, since, last), *found]
        except ApiError as error:
            if error.status != _EXPIRED:
                raise
            oldest = int(error.problem["oldest"])
        else:
            last, step = since, min(4 * step, _STEP)
    return found[-count:]


def _between(client: BoxClient, query: Mapping[str, Any], since: int, last: int) -> list[dict[str, Any]]:
    """Those that match after `since`, up to `last`."""
    found: list[dict[str, Any]] = []
    while since < last:
        batch = client.call("read_events", query={**query, "since": since, "limit": 1000})
        found += [event for event in batch["events"] if event["seq"] <= last]
        since = batch["next_since"]
    return found


@command.command()
@click.argument("seq", type=click.IntRange(0))
@click.pass_obj
def show(cli: Cli, seq: int) -> None:
    """Show one record whole, by its number."""
    with cli.client() as client:
        event = client.call("show_event", {"seq": str(seq)})
    cli.out.document(event)
    cli.out.block(json.dumps(event, indent=2, ensure_ascii=False))


@command.command()
@click.argument("directory", type=DIRECTORY, required=False)
@click.option(
    "--anchor", metavar="SEQ:HASH", callback=_anchor, help="A record known from elsewhere; with it a cut tail is found."
)
@click.pass_obj
def verify(cli: Cli, directory: Path | None, anchor: tuple[int, str] | None) -> int:
    """Check the journal of the running box, or a journal folder DIRECTORY, which needs no box and no manifest.

    Every record, every link, every seal. Exit 1 with file, line and record when something was edited, removed,
    inserted, moved or spliced. A tail that was cut off whole is found with DIRECTORY and --anchor only.
    """
    from agentbox.adapters.events.journal.verify import verify as check

    if directory is None and anchor is not None:
        raise click.UsageError("--anchor goes with DIRECTORY")
    report = check(directory, anchor=anchor).to_wire() if directory is not None else _verified_by_box(cli)
    cli.out.document(report)
    if (error := report["error"]) is not None:
        where = f"{error['file']}:{error['line']}" if error["line"] else error["file"]
        record = "" if error["seq"] is None else f", record {error['seq']}"
        cli.out.line(f"damaged: {where}{record}: {error['reason']}")
        return ExitCode.BAD
    records = "no record" if report["last_seq"] < 0 else f"records {report['first_seq']} to {report['last_seq']}"
    cli.out.line(f"sound: {records}, tail {report['last_seq']}:{report['tail_hash']}")
    return ExitCode.DONE


def _verified_by_box(cli: Cli) -> Mapping[str, Any]:
    with cli.client() as client:
        found: Mapping[str, Any] = client.call("verify_events", body={})
    return found


@command.command()
@click.argument("directory", type=DIRECTORY, required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "cloudevents"]),
    default="jsonl",
    show_default=True,
    help="Lines as they are stored, or CloudEvents 1.0.",
)
@click.option("--since", type=click.IntRange(-1), default=-1, metavar="SEQ", help="Only what follows on this record.")
@click.option("--type", "types", multiple=True, metavar="T", help="Only this type, or prefix.*; may be repeated.")
@click.pass_obj
def export(cli: Cli, directory: Path | None, form: str, since: int, types: tuple[str, ...]) -> None:
    """Write the records of the running box, or of a journal folder DIRECTORY, to stdout: one JSON object a line.

    A folder is verified first; of a damaged one nothing is written. Ends with the newest record there is at the start.
    """
    import rfc8785

    from agentbox.adapters.events.cloudevents import cloud_event
    from agentbox.adapters.events.journal.export import stored
    from agentbox.contracts.events import EventFilter
    from agentbox.core.canonical import canonical_json

    wanted = EventFilter(types=types)
    for event in stored(directory, since=since) if directory is not None else _of_box(cli, since):
        if wanted.matches(event):
            line = rfc8785.dumps(event.to_wire()) if form == "jsonl" else canonical_json(cloud_event(event))
            text = line.decode()
            print(visible(text) if sys.stdout.isatty() else text)


def _of_box(cli: Cli, since: int) -> Iterator[Event]:
    from agentbox.contracts.events import Event

    with cli.client() as client:
        head = int(client.call("head_event")["seq"])
        while since < head:
            batch = client.call("read_events", query={"since": since, "limit": 1000})
            since = batch["next_since"]
            yield from (Event.from_wire(event) for event in batch["events"] if event["seq"] <= head)


@command.command()
@click.argument("directory", type=DIRECTORY)
@click.option(
    "--before", required=True, metavar="SEQ|DAY", callback=_before, help="Keep from this record or UTC day on."
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.pass_obj
def prune(cli: Cli, directory: Path, before: int | str, dry_run: bool) -> None:
    """Remove whole sealed segments that end before a record or a day (YYYY-MM-DD).

    The box must be down, and the journal sound. Where it begins from then on is written to anchor.json, so that the rest
    still verifies.
    """
    from agentbox.adapters.events.journal.prune import prune as remove

    if not directory.is_dir():
        raise AgentboxError(f"cannot prune {directory}: there is no such folder", exit_code=ExitCode.USAGE)
    seq, day = (before, None) if isinstance(before, int) else (None, before)
    first, removed = remove(directory, before_seq=seq, before_day=day, dry_run=dry_run)
    cli.out.document({"first_seq": first, "removed": removed, "dry_run": dry_run})
    for name in removed:
        cli.out.line(f"{'would remove' if dry_run else 'removed'} {name}")
    cli.out.line(f"the journal {'would begin' if dry_run else 'begins'} at record {first}")


@command.command()
@click.option(
    "-n", "count", type=click.IntRange(0, 1000), default=20, show_default=True, help="How many of the dead letters."
)
@click.pass_obj
def delivery(cli: Cli, count: int) -> int:
    """Show how far the sink of the events is, and what it refused for good, the newest first.

    Exit 1 while a person has to do something: a token that is refused, an address that is gone.
    """
    with cli.client() as client:
        found = client.call("event_delivery", query={"limit": count})
    cli.out.document(found)
    if not found["sink"]:
        cli.out.line("the journal stays in this box: adapters.events.use is not external-http")
        return ExitCode.DONE
    waiting = (
        f"{found['undelivered']} wait, the oldest for {found['oldest_s']:.0f} s"
        if found["undelivered"]
        else "none waits"
    )
    cli.out.line(f"delivered up to record {found['cursor']}; {waiting}; {found['dead']} dead letters")
    if found["trouble"]:
        cli.out.line(f"{'held' if found['held'] else 'tried again'}: {found['trouble']}")
    for letter in found["letters"]:
        cli.out.line(f"{letter['seq']:>8}  {letter['at']}  {letter['type']:<28} {letter['reason']}")
    return ExitCode.BAD if found["held"] else ExitCode.DONE


def _say(cli: Cli, event: Mapping[str, Any]) -> None:
    if cli.json:
        cli.out.row(event)
        return
    whom = event["subject"] or event["agent_id"] or ""
    data = json.dumps(event["data"], ensure_ascii=False, sort_keys=True)
    cli.out.line(f"{event['seq']:>8}  {event['ts']}  {event['type']:<28} {whom} {data}")
