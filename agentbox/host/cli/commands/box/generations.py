"""`agentbox generations`: what ran before, and what is kept of it."""

from __future__ import annotations

import difflib
import json
import sys
from dataclasses import asdict, replace
from typing import Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize
from agentbox.host.cli.stages.going_back import discard_copies
from agentbox.host.cli.table import print_fields, print_table
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.generations.pruning import orphaned_volumes, outdated, require_removable
from agentbox.host.generations.record import Generation
from agentbox.host.generations.store import MANIFEST, PLAN, GenerationStore

_HIDDEN = ("box", "environment", "passed", "secrets", "key")  # of use to agentbox only


@click.group(name="generations", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show what ran before: release, image, plan, volumes and whether it was good.

    Each container made of other inputs (image, manifest, lock, options, volumes) is a generation.
    `agentbox rollback` goes back to one.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_generations)


@command.command(name="list")
@click.pass_obj
def list_generations(cli: CliContext) -> None:
    """List the generations that are kept, oldest first."""
    store = GenerationStore(cli.state())
    rows, current = store.rows(), store.current()
    number = current.number if current is not None else 0
    cli.out.document({"current": number, "generations": [_fields(row, number) for row in rows]})
    if not rows:
        cli.out.line("no generation yet: `agentbox up` makes the first")
        return
    header = ("N", "verdict", "release", "plan", "image", "volume", "made", "by", "")
    print_table(
        cli.out,
        [
            header,
            *(
                (
                    row.number,
                    row.verdict,
                    row.release,
                    _short(row.plan_digest),
                    _short(row.image_id or row.sources),
                    row.volume("state"),
                    row.at,
                    row.by,
                    ", ".join(
                        name
                        for name, holds in (
                            ("current", row.number == number),
                            ("pinned", row.pinned),
                        )
                        if holds
                    ),
                )
                for row in rows
            ),
        ],
    )


@command.command(name="show")
@click.argument("number", type=click.IntRange(min=1))
@click.pass_obj
def show(cli: CliContext, number: int) -> None:
    """Show the record of one generation."""
    store = GenerationStore(cli.state())
    current = store.current()
    document = _fields(store.get(number), current.number if current is not None else 0)
    cli.out.document(document)
    print_fields(
        cli.out, [(name.replace("_", " "), _text(value)) for name, value in document.items()]
    )


@command.command(name="diff")
@click.argument("first", type=click.IntRange(min=1))
@click.argument("second", type=click.IntRange(min=1))
@click.pass_obj
def diff(cli: CliContext, first: int, second: int) -> None:
    """Show what differs between two generations: record, manifest and plan."""
    store = GenerationStore(cli.state())
    rows = [_fields(store.get(number), 0) for number in (first, second)]
    changed = {
        name: [rows[0][name], rows[1][name]]
        for name in rows[0]
        if rows[0][name] != rows[1][name] and name not in ("number", "at", "confirmed", "pinned")
    }
    texts = {name: _diff(store, first, second, name) for name in (MANIFEST, PLAN)}
    cli.out.document({"changed": changed, "manifest": texts[MANIFEST], "plan": texts[PLAN]})
    if not changed and not any(texts.values()):
        cli.out.line(f"generations {first} and {second} are made of the same inputs")
    for name, (old, new) in changed.items():
        cli.out.line(f"{name.replace('_', ' ')}: {_text(old) or '-'} -> {_text(new) or '-'}")
    for text in texts.values():
        if text:
            for line in text.split("\n"):
                cli.out.line(line)


@command.command(name="pin")
@click.argument("number", type=click.IntRange(min=1))
@click.option("--remove", is_flag=True, help="Remove the pin.")
@click.pass_obj
def pin(cli: CliContext, number: int, remove: bool) -> None:
    """Keep a generation: it is not removed by later ones or by `prune`."""
    with cli.state().exclusive_lock():
        store = GenerationStore(cli.state())
        store.save(replace(store.get(number), pinned=not remove))
    cli.out.document({"number": number, "pinned": not remove})
    cli.out.line(f"generation {number} is {'no longer pinned' if remove else 'pinned'}")


@command.command(name="prune")
@click.argument("numbers", type=click.IntRange(min=1), nargs=-1)
@click.option("--yes", "-y", is_flag=True, help="Do not ask before volumes are removed.")
@click.pass_obj
def prune_generations(cli: CliContext, numbers: tuple[int, ...], yes: bool) -> None:
    """Forget generations: those named, else those beyond upgrade.keep_generations.

    Their records go, and their images with the next `up`. Volumes that no other generation uses,
    as a restore or a reset leaves them, go only with a generation that is named.
    """
    model = cli.load_manifest().usable
    with cli.state().exclusive_lock():
        store = GenerationStore(cli.state())
        for number in numbers:
            require_removable(store, number)
        rows = [store.get(number) for number in numbers] or outdated(
            store, model.upgrade.keep_generations
        )
        orphans = orphaned_volumes(store, [row.number for row in rows])
        names = [name for _engine, _plan_name, name in orphans]
        if names and not yes:
            _confirm(cli, numbers, names)
        for engine, plan_name, name in orphans:
            engine_by_name(engine).discard_volumes(model.meta.name, cli.state(), {plan_name: name})
        for row in rows:
            if row.copies:
                discard_copies(cli, row)
            store.remove(row.number)
        removed = [row.number for row in rows]
    cli.out.document({"removed": removed, "volumes_removed": names})
    volumes = f", and the volumes {', '.join(names)}" if names else ""
    cli.out.line(f"removed {pluralize(len(removed), 'generation')}{volumes}")


def _confirm(cli: CliContext, numbers: tuple[int, ...], volumes: list[str]) -> None:
    which = " and ".join(map(str, numbers))
    data = f"the data in {', '.join(volumes)}"
    asked = f"Remove generation {which} with {data}?"
    if not (sys.stdin.isatty() and click.confirm(asked, default=False, err=True)):
        raise AgentboxError(
            f"cannot remove generation {which}: not confirmed; {data} would go with it",
            "Give --yes.",
            exit_code=ExitCode.USAGE,
        )


def _fields(row: Generation, current: int) -> dict[str, Any]:
    document = {name: value for name, value in asdict(row).items() if name not in _HIDDEN}
    return {**document, "current": row.number == current}


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12] or "-"


def _text(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value) if isinstance(value, dict | list) and value else value or ""


def _diff(store: GenerationStore, first: int, second: int, name: str) -> str:
    old, new = (_lines(store, number, name) for number in (first, second))
    return "\n".join(
        difflib.unified_diff(old, new, f"{first}/{name}", f"{second}/{name}", lineterm="")
    )


def _lines(store: GenerationStore, number: int, name: str) -> list[str]:
    path = store.folder(number) / name
    if not path.is_file():
        raise AgentboxError(
            f"cannot compare generation {number}: {path} is missing",
            "`agentbox generations show` prints what is recorded of it.",
        )
    return path.read_text(errors="replace").splitlines()
