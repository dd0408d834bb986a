"""`agentbox logs`: what the box prints, rendered for people."""

from __future__ import annotations

import json
from typing import Any

import click

from agentbox.cli.context import Cli
from agentbox.engine.choose import engine_named

_COMMON = {"level", "time", "event", "program", "boot_id", "plan_digest", "image_ref", "seq", "agentbox.stage"}


@click.command(name="logs")
@click.argument("program", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come; Ctrl-C ends it.")
@click.option("--since", metavar="WHEN", help="A time or a span as docker understands it (2026-01-01T00:00:00Z, 10m).")
@click.option("--lines", "-n", type=click.IntRange(min=0), default=None, help="Only the last N.")
@click.pass_obj
def command(cli: Cli, program: str | None, follow: bool, since: str | None, lines: int | None) -> None:
    """Show the box's log: boot events and the JSON lines of its programs. --json (before the verb) shows them raw."""
    record = cli.state().running_record()
    engine = engine_named(record.engine)
    for line in engine.logs(record, follow=follow, lines=lines, since=since):
        entry = _parsed(line)
        if program is not None and (entry is None or entry.get("program", "boot") != program):
            continue
        click.echo(line if cli.json or entry is None else _for_people(entry))


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _for_people(entry: dict[str, Any]) -> str:
    moment = str(entry.get("time", ""))[11:23]
    rest = " ".join(f"{key}={_short(value)}" for key, value in sorted(entry.items()) if key not in _COMMON)
    return f"{moment:<12} {entry.get('level', ''):<7} {entry.get('program', 'boot'):<14} {entry.get('event', '')} {rest}".rstrip()


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
