"""`agentbox memory`: the memory slot of the box."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import Paths
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.listing import listing_of, open_box, parse_json, read_page, text_or_stdin
from agentbox.host.cli.table import print_fields, print_table
from agentbox.host.cli.transfer import Conflict, import_options, print_counts, write_output

NAMESPACE = click.option(
    "--namespace", "-n", default="default", show_default=True, metavar="NS", help="Its namespace."
)
_MODES = ("hybrid", "vector", "text")


@click.group(name="memory")
def command() -> None:
    """Manage the memory of the box: entries with a key, in namespaces."""


@command.command(name="list")
@NAMESPACE
@click.option("--prefix", default="", metavar="P", help="Only keys that begin with P.")
@click.option("--all", "everything", is_flag=True, help="All of them, not the first 100.")
@click.pass_obj
def list_(cli: CliContext, namespace: str, prefix: str, everything: bool) -> None:
    """List entries in order of their keys: key, time of the last change, text."""
    with open_box(cli) as client:
        page = listing_of(client, "list_memory", {"ns": namespace}, prefix=prefix)
        entries = read_page(cli.out, page, everything=everything)
    cli.out.document(entries)
    rows = [(entry["key"], entry["updated_at"], entry["text"]) for entry in entries]
    print_table(cli.out, rows, whole=(0,))


@command.command()
@NAMESPACE
@click.option("--value", "only_value", is_flag=True, help="Print the value alone, as JSON.")
@click.argument("key")
@click.pass_obj
def get(cli: CliContext, namespace: str, only_value: bool, key: str) -> None:
    """Show one entry."""
    with open_box(cli) as client:
        entry = client.call("retrieve_memory", {"ns": namespace, "key": key})
    cli.out.document(entry)
    if only_value:
        cli.out.block(json.dumps(entry["value"], indent=2, ensure_ascii=False))
    else:
        _print_entry(cli, entry)


@command.command()
@NAMESPACE
@click.option(
    "--text", default=None, metavar="T", help="What a search finds. [default: texts of the value]"
)
@click.option("--meta", "-m", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
@click.option(
    "--ttl", type=click.IntRange(1), default=None, metavar="S", help="Forget it after S seconds."
)
@click.option("--as-json", is_flag=True, help="VALUE is JSON, not a text.")
@click.argument("key")
@click.argument("value")
@click.pass_obj
def put(
    cli: CliContext,
    namespace: str,
    text: str | None,
    meta: tuple[str, ...],
    ttl: int | None,
    as_json: bool,
    key: str,
    value: str,
) -> None:
    """Store VALUE (- for stdin) under KEY; an entry with that key is replaced."""
    given = text_or_stdin(value, "VALUE") or ""
    body: dict[str, Any] = {"value": parse_json(given, "VALUE") if as_json else given}
    optional = {"text": text, "ttl_s": ttl, "metadata": _parse_metadata(meta) or None}
    body |= {name: item for name, item in optional.items() if item is not None}
    with open_box(cli) as client:
        _print_entry(cli, client.call("store_memory", {"ns": namespace, "key": key}, body=body))


@command.command()
@NAMESPACE
@click.argument("key")
@click.pass_obj
def rm(cli: CliContext, namespace: str, key: str) -> None:
    """Remove an entry."""
    with open_box(cli) as client:
        client.call("delete_memory", {"ns": namespace, "key": key})
    cli.out.document({"removed": [key]})
    cli.out.line(f"removed {key}")


@command.command()
@click.option(
    "--namespace",
    "-n",
    "namespaces",
    multiple=True,
    metavar="NS",
    help="Search in it; may be repeated. [default: default]",
)
@click.option("--mode", type=click.Choice(_MODES), default="hybrid", show_default=True)
@click.option(
    "--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Number of hits."
)
@click.argument("query")
@click.pass_obj
def search(cli: CliContext, namespaces: tuple[str, ...], mode: str, limit: int, query: str) -> None:
    """Find the entries that match QUERY best: score, namespace, key, text."""
    body = {
        "query": text_or_stdin(query, "QUERY"),
        "namespaces": list(namespaces or ("default",)),
        "limit": limit,
        "mode": mode,
    }
    with open_box(cli) as client:
        hits = client.call("search_memory", body=body)["hits"]
    cli.out.document(hits)
    entries = [(f"{hit['score']:.3f}", hit["entry"]) for hit in hits]
    rows = [(score, entry["namespace"], entry["key"], entry["text"]) for score, entry in entries]
    print_table(cli.out, rows, whole=(1, 2))


@command.command()
@click.option("--namespace", "-n", default=None, metavar="NS", help="Of one namespace.")
@click.pass_obj
def stats(cli: CliContext, namespace: str | None) -> None:
    """Show how much is stored, the namespaces, the model and the quotas."""
    with open_box(cli) as client:
        found = client.call("memory_stats", query={"namespace": namespace})
    cli.out.document(found)
    quotas = ", ".join(f"{name} {value}" for name, value in found["quotas"].items())
    names = "\n".join(found["namespaces"])
    print_fields(cli.out, list({**found, "quotas": quotas, "namespaces": names}.items()))


@command.command()
@click.option(
    "--namespace", "-n", "namespaces", multiple=True, metavar="NS", help="[default: all of them]"
)
@click.argument("file", default="-")
@click.pass_obj
def export(cli: CliContext, namespaces: tuple[str, ...], file: str) -> None:
    """Write entries to FILE, or to standard output, as JSON lines after a header row."""
    from agentbox.host.cli.commands.data.memory_transfer import export_lines

    with open_box(cli) as client:
        write_output(file, export_lines(client, namespaces))


@command.command(name="import")
@import_options("fail", "skip", "replace")
@click.argument("file")
@click.pass_obj
def import_(cli: CliContext, dry_run: bool, on_conflict: Conflict, file: str) -> None:
    """Store the entries of an export (- for stdin) under their namespaces and keys.

    An equal entry counts as unchanged, so the same import can be run again. Exit 7 at an entry that
    differs, unless --on-conflict says otherwise.
    """
    from agentbox.host.cli.commands.data.memory_transfer import import_lines

    with open_box(cli) as client, click.open_file(file, "rb") as stream:
        counts = import_lines(client, stream, dry_run=dry_run, on_conflict=on_conflict)
    print_counts(cli.out, counts, dry_run=dry_run)


@command.command()
@click.pass_obj
def reembed(cli: CliContext) -> int:
    """Recompute all vectors with the embedding model of the running box.

    Needed when the memory reports vectors of another model. Resumes after an interruption. Until it
    is complete the memory of every box on that store refuses requests; then each box opens it
    within a minute.
    """
    from agentbox.host.engines.registry import engine_by_name

    record = cli.running_record()
    engine = engine_by_name(record.engine)
    if (state := engine.inspect(record).state) != "running":
        raise AgentboxError(
            f"cannot rewrite vectors in the box {record.name}: it is not running (it is {state})",
            "Start it: ./agentbox.sh up",
            exit_code=ExitCode.NOT_RUNNING,
        )
    paths = Paths(Path(record.root or "/"))
    argv = [
        str(paths.python),
        "-I",
        "-m",
        "agentbox.api.reembed",
        *(["--json"] if cli.json else []),
    ]
    return engine.execute(record, argv, terminal=False)


def _parse_metadata(words: tuple[str, ...]) -> dict[str, str]:
    """Raises UsageError."""
    pairs = [word.partition("=") for word in words]
    if wrong := [name + sign for name, sign, _ in pairs if not (name and sign)]:
        raise click.UsageError(f"--meta {wrong[0]!r} must be NAME=VALUE.")
    return {name: value for name, _, value in pairs}


def _print_entry(cli: CliContext, entry: Mapping[str, Any]) -> None:
    cli.out.document(entry)
    shown = {
        **entry,
        "value": json.dumps(entry["value"], ensure_ascii=False),
        "metadata": json.dumps(entry["metadata"], ensure_ascii=False) if entry["metadata"] else "",
    }
    print_fields(cli.out, list(shown.items()))
