"""Verbs of `agentbox bead` that change beads."""

from __future__ import annotations

from typing import Any

import click

from agentbox.core.errors import ExitCode
from agentbox.host.cli.commands.data.bead_text import print_bead
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.listing import find_bead_id, open_box, parse_json, text_or_stdin

_OUTCOMES = ("done", "failed", "cancelled")


@click.command()
@click.option("--parent", default=None, metavar="ID", help="Below this bead; without it an epic.")
@click.option("--body", default="", metavar="TEXT", help="Description; - reads stdin.")
@click.option("--priority", type=click.IntRange(0), default=5, help="0 is first. [default: 5]")
@click.option("--tag", "tags", multiple=True, metavar="T", help="May be repeated.")
@click.option("--data", default=None, metavar="JSON", help="An object for programs; - reads stdin.")
@click.option(
    "--dedup-key", default=None, metavar="KEY", help="Return the existing bead with the same key."
)
@click.option("--not-before", default=None, metavar="TIME", help="RFC 3339; not ready before it.")
@click.option(
    "--every", default=None, metavar="WHEN", help="A schedule: 5-field cron in UTC, or PT60S."
)
@click.option("--max-attempts", type=click.IntRange(1), default=5, help="Claims. [default: 5]")
@click.argument("title")
@click.pass_obj
def create(
    cli: CliContext,
    parent: str | None,
    body: str,
    priority: int,
    tags: tuple[str, ...],
    data: str | None,
    dedup_key: str | None,
    not_before: str | None,
    every: str | None,
    max_attempts: int,
    title: str,
) -> None:
    """Create a bead called TITLE; print its id."""
    if body == data == "-":
        raise click.UsageError("Only one of --body and --data can be -.")
    spec: dict[str, Any] = {
        "title": title,
        "body": text_or_stdin(body, "the body"),
        "priority": priority,
        "tags": list(tags),
        "max_attempts": max_attempts,
    }
    if (given := text_or_stdin(data, "--data")) is not None:
        spec["data"] = parse_json(given, "--data")
    optional = {"dedup_key": dedup_key, "not_before": not_before, "every": every}
    spec |= {name: value for name, value in optional.items() if value is not None}
    with open_box(cli) as client:
        if parent is None:
            bead = client.call("create_epic", body=spec)
        else:
            bead = client.call("create_child", {"id": find_bead_id(client, parent)}, body=spec)
    cli.out.document(bead)
    cli.out.line(bead["id"])


@click.command()
@click.option("--parent", default=None, metavar="ID", help="Without ID: only below this bead.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Without ID: only with this tag.")
@click.option("--assignee", default=None, metavar="A", help="Who takes it. [default: the caller]")
@click.option(
    "--seconds",
    type=click.IntRange(5, 3600),
    default=None,
    metavar="S",
    help="Length of the lease. [default: adapters.beads.lease_seconds]",
)
@click.argument("id", required=False)
@click.pass_obj
def claim(
    cli: CliContext,
    parent: str | None,
    tags: tuple[str, ...],
    assignee: str | None,
    seconds: int | None,
    id: str | None,
) -> int:
    """Take a lease on a bead, or on the first that is ready; print the ids of bead and lease.

    Exit 1 when none is ready, 7 when the bead cannot be claimed.
    """
    import uuid

    if id is not None and (parent is not None or tags):
        raise click.UsageError("--parent and --tag choose a bead: give them without ID.")
    body: dict[str, Any] = {"lease_id": str(uuid.uuid4())}
    body |= {} if assignee is None else {"assignee": assignee}
    body |= {} if seconds is None else {"lease_s": seconds}
    with open_box(cli) as client:
        if id is not None:
            claimed = client.call("claim", {"id": find_bead_id(client, id)}, body=body)
        else:
            body |= {"tags": list(tags)} if tags else {}
            body |= {} if parent is None else {"parent_id": find_bead_id(client, parent)}
            claimed = client.call("claim_next", body=body)
    cli.out.document(claimed)
    if claimed is None:
        cli.out.note("agentbox: no bead is ready")
        return ExitCode.BAD
    cli.out.line(f"{claimed['bead']['id']}  {claimed['lease_id']}")
    return ExitCode.DONE


@click.command()
@click.option("--lease", required=True, metavar="LEASE", help="Id of the lease; - reads stdin.")
@click.option(
    "--delay", "delay_s", type=click.IntRange(0), default=0, metavar="S", help="Ready after S."
)
@click.option("--note", default="", metavar="TEXT", help="Stored with the bead.")
@click.argument("id")
@click.pass_obj
def release(cli: CliContext, lease: str, delay_s: int, note: str, id: str) -> None:
    """Return the lease on a bead: it is open again. Exit 7 when the lease is lost."""
    body = {"lease_id": text_or_stdin(lease, "--lease"), "delay_s": delay_s, "note": note}
    with open_box(cli) as client:
        print_bead(cli, client.call("release", {"id": find_bead_id(client, id)}, body=body))


@click.command()
@click.option(
    "--outcome", type=click.Choice(_OUTCOMES), default="done", show_default=True, help="Its end."
)
@click.option("--note", default="", metavar="TEXT", help="Stored with the bead.")
@click.option("--result", default=None, metavar="JSON", help="Stored with the bead; - reads stdin.")
@click.option(
    "--lease", default=None, metavar="LEASE", help="Id of the lease on it; - reads stdin."
)
@click.option("--force", is_flag=True, help="Close it although somebody else has a lease.")
@click.argument("id")
@click.pass_obj
def close(
    cli: CliContext,
    outcome: str,
    note: str,
    result: str | None,
    lease: str | None,
    force: bool,
    id: str,
) -> None:
    """Close a bead. Exit 7 when it is claimed by somebody else, or has open children."""
    if lease == result == "-":
        raise click.UsageError("Only one of --lease and --result can be -.")
    body: dict[str, Any] = {"outcome": outcome, "note": note, "force": force}
    if (given := text_or_stdin(result, "--result")) is not None:
        body["result"] = parse_json(given, "--result")
    if (held := text_or_stdin(lease, "--lease")) is not None:
        body["lease_id"] = held
    with open_box(cli) as client:
        print_bead(cli, client.call("close_bead", {"id": find_bead_id(client, id)}, body=body))


@click.command()
@click.option("--remove", is_flag=True, help="Remove the dependency.")
@click.argument("id")
@click.argument("blocker")
@click.pass_obj
def dep(cli: CliContext, remove: bool, id: str, blocker: str) -> None:
    """Make the bead ID wait until the bead BLOCKER is closed as done. Exit 7 for a cycle."""
    with open_box(cli) as client:
        names = {"id": find_bead_id(client, id), "blocker": find_bead_id(client, blocker)}
        client.call("remove_dep" if remove else "add_dep", names)
        print_bead(cli, client.call("show_bead", {"id": names["id"]}))


VERBS = (create, claim, release, close, dep)
