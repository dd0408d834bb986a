"""`agentbox events`: the journal of the box, and journals as folders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from agentbox.cli.context import Cli
from agentbox.errors import AgentboxError, ExitCode

DIRECTORY = click.Path(path_type=Path, file_okay=False)


def _anchor(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, str] | None:
    """SEQ:HASH of a record known from elsewhere."""
    if value is None:
        return None
    seq, _, digest = value.partition(":")
    if not seq.isdecimal() or len(digest) != 64:
        raise click.BadParameter("must be a record number, a colon and 64 hex digits")
    return int(seq), digest


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
        since = max(-1, head - count)
        while since < head:
            batch = client.call("read_events", query={**query, "since": since, "limit": 1000})
            since = batch["next_since"]
            for event in batch["events"]:
                _say(cli, event)
        if follow:
            for sent in client.stream("stream_events", query=query, since=str(head) if head >= 0 else ""):
                _say(cli, json.loads(sent.data))


@command.command()
@click.argument("seq", type=click.IntRange(0))
@click.pass_obj
def show(cli: Cli, seq: int) -> None:
    """Show one record whole, by its number."""
    with cli.client() as client:
        event = client.call("show_event", {"seq": str(seq)})
    cli.out.document(event)
    cli.out.line(json.dumps(event, indent=2, ensure_ascii=False))


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
    from agentbox.adapters.events.verify import verify as check

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
@click.argument("directory", type=DIRECTORY)
@click.option("--before", "before_seq", type=click.IntRange(0), required=True, metavar="SEQ", help="Keep from here on.")
@click.pass_obj
def prune(cli: Cli, directory: Path, before_seq: int) -> None:
    """Remove whole sealed segments that end before a record.

    The box must be down. The first record that is kept is written to anchor.json, so that the rest still verifies.
    """
    from agentbox.adapters.events.prune import prune as remove

    if not directory.is_dir():
        raise AgentboxError(f"cannot prune {directory}: there is no such folder", exit_code=ExitCode.USAGE)
    first = remove(directory, before_seq=before_seq)
    cli.out.document({"first_seq": first})
    cli.out.line(f"the journal begins at record {first}")


def _say(cli: Cli, event: Mapping[str, Any]) -> None:
    if cli.json:
        print(json.dumps(event, sort_keys=True), flush=True)
        return
    whom = event["subject"] or event["agent_id"] or ""
    data = json.dumps(event["data"], ensure_ascii=False, sort_keys=True)
    cli.out.line(f"{event['seq']:>8}  {event['ts']}  {event['type']:<28} {whom} {data}")
