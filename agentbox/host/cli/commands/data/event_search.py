"""Verbs of `agentbox events` that ask the index of the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from agentbox.core.errors import ExitCode
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.listing import MAX_PAGE, each_item, listing_of, open_box, read_page
from agentbox.host.cli.table import print_table

_MAX_DATA = 200  # characters of the data in a line


def _parse_time(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """A day or a time, in UTC unless it has an offset; as RFC 3339."""
    from datetime import UTC

    from agentbox.core import clock

    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            "must be a day or a time such as 2026-01-31 or 2026-01-31T12:00:00"
        ) from None
    return clock.to_wire(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


@click.command()
@click.option("--type", "types", multiple=True, metavar="T", help="This type, or prefix.*.")
@click.option("--agent", default=None, metavar="ID", help="Only of this agent.")
@click.option("--session", default=None, metavar="ID", help="Only of this session.")
@click.option("--trace", default=None, metavar="ID", help="Only of this trace; 8 or more digits.")
@click.option("--since", callback=_parse_time, metavar="TIME", help="From this time on, in UTC.")
@click.option("--until", callback=_parse_time, metavar="TIME", help="Before this time, in UTC.")
@click.option("--all", "everything", is_flag=True, help="All of them, not the newest 100.")
@click.argument("words", nargs=-1)
@click.pass_obj
def search(
    cli: CliContext,
    types: tuple[str, ...],
    agent: str | None,
    session: str | None,
    trace: str | None,
    since: str | None,
    until: str | None,
    everything: bool,
    words: tuple[str, ...],
) -> None:
    """Find events with all of WORDS in type, names or data, newest first.

    A word that ends with * finds all that begin with it. An event is found within 2 seconds.
    """
    with open_box(cli) as client:
        page = listing_of(
            client,
            "search_events",
            words=" ".join(words) or None,
            types=",".join(types) or None,
            agent_id=agent,
            session_id=session,
            trace_id=trace,
            since=since,
            until=until,
        )
        events = read_page(cli.out, page, everything=everything)
    cli.out.document(events)
    print_table(
        cli.out,
        [(e["seq"], e["ts"], e["type"], e["subject"] or e["agent_id"], _data(e)) for e in events],
        whole=(3, 4),
    )


@click.command()
@click.argument("id")
@click.pass_obj
def trace(cli: CliContext, id: str) -> int:
    """Draw one trace as a time line: seconds since its first event, number, type, who.

    ID is a trace id, or its first 8 or more digits. Exit 1 when no event has it.
    """
    with open_box(cli) as client:
        page = listing_of(client, "search_events", trace_id=id)
        events = list(each_item(page, size=MAX_PAGE))[::-1]
    cli.out.document(events)
    if not events:
        cli.out.note(f"agentbox: no event of the trace {id}")
        return ExitCode.BAD
    first = datetime.fromisoformat(events[0]["ts"])
    rows = []
    for event in events:
        seconds = (datetime.fromisoformat(event["ts"]) - first).total_seconds()
        who = event["subject"] or event["agent_id"]
        rows.append((f"{seconds:+10.3f} s", event["seq"], event["type"], who, _data(event)))
    print_table(cli.out, rows, whole=(3, 4))
    if len({event["trace_id"] for event in events}) > 1:
        cli.out.note("agentbox: several traces begin with these digits")
    return ExitCode.DONE


@click.command()
@click.pass_obj
def stats(cli: CliContext) -> None:
    """Show how many events of each type the journal has."""
    with open_box(cli) as client:
        found = client.call("event_stats")
    cli.out.document(found)
    print_table(cli.out, [(f"{count:>8}", name) for name, count in found["types"].items()])
    behind = found["head_seq"] - found["indexed_seq"]
    cli.out.line(
        f"{found['events']:>8}  in all" + (f", {behind} not yet counted" if behind else "")
    )


def _data(event: Mapping[str, Any]) -> str:
    text = escape_invisible(json.dumps(event["data"], ensure_ascii=False, sort_keys=True))
    return text if len(text) <= _MAX_DATA else f"{text[: _MAX_DATA - 1]}…"


VERBS = (search, trace, stats)
