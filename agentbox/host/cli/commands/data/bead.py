"""`agentbox bead`: work items of the box."""

from __future__ import annotations

import click

from agentbox.host.cli.commands.data.bead_changes import VERBS
from agentbox.host.cli.commands.data.bead_text import print_bead, print_beads, title_of
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.listing import find_bead_id, listing_of, open_box, read_page
from agentbox.host.cli.transfer import Conflict, import_options, print_counts, write_output

_STATUSES = ("open", "claimed", "closed")
_KINDS = ("epic", "task", "schedule")
ALL = click.option("--all", "everything", is_flag=True, help="All of them, not the first 100.")


@click.group(name="bead")
def command() -> None:
    """Manage beads, the work items of the box.

    ID is an id, or the first 8 or more characters of one if no other begins with them.
    """


for verb in VERBS:
    command.add_command(verb)


@command.command(name="list")
@click.option("--status", type=click.Choice(_STATUSES), default=None, help="Only in this state.")
@click.option("--kind", type=click.Choice(_KINDS), default=None, help="Only of this kind.")
@click.option("--parent", default=None, metavar="ID", help="Only direct children of this bead.")
@click.option("--tag", default=None, metavar="T", help="Only with this tag.")
@click.option("--assignee", default=None, metavar="A", help="Only claimed or closed by A.")
@click.option("--creator", default=None, metavar="C", help="Only created by C.")
@ALL
@click.pass_obj
def list_(
    cli: CliContext,
    status: str | None,
    kind: str | None,
    parent: str | None,
    tag: str | None,
    assignee: str | None,
    creator: str | None,
    everything: bool,
) -> None:
    """List beads, oldest first: id, kind, state, assignee, title."""
    with open_box(cli) as client:
        parent_id = None if parent is None else find_bead_id(client, parent)
        page = listing_of(
            client,
            "list_beads",
            status=status,
            kind=kind,
            parent_id=parent_id,
            tag=tag,
            assignee=assignee,
            creator=creator,
        )
        print_beads(cli, read_page(cli.out, page, everything=everything))


@command.command()
@click.option("--parent", default=None, metavar="ID", help="Only below this bead.")
@ALL
@click.pass_obj
def ready(cli: CliContext, parent: str | None, everything: bool) -> None:
    """List beads that can be claimed now, in the order in which they would be."""
    with open_box(cli) as client:
        parent_id = None if parent is None else find_bead_id(client, parent)
        page = listing_of(client, "ready_beads", parent_id=parent_id)
        print_beads(cli, read_page(cli.out, page, everything=everything))


@command.command()
@click.argument("id")
@click.pass_obj
def show(cli: CliContext, id: str) -> None:
    """Show one bead."""
    with open_box(cli) as client:
        print_bead(cli, client.call("show_bead", {"id": find_bead_id(client, id)}))


@command.command()
@ALL
@click.argument("id", required=False)
@click.pass_obj
def tree(cli: CliContext, everything: bool, id: str | None) -> None:
    """Show beads below ID, or all epics, with what is below each."""
    from agentbox.host.cli.commands.data.bead_tree import walk

    with open_box(cli) as client:
        top = None if id is None else client.call("show_bead", {"id": find_bead_id(client, id)})
        rows = walk(cli.out, client, top, everything=everything)
    cli.out.document([{**bead, "level": level} for level, bead in rows])
    for level, bead in rows:
        state = bead["outcome"] or bead["status"]
        cli.out.line(f"{'  ' * level}{bead['id']}  {state:<9}  {title_of(bead)}")


@command.command()
@click.argument("file", default="-")
@click.pass_obj
def export(cli: CliContext, file: str) -> None:
    """Write all beads to FILE, or to standard output, as JSON lines after a header row.

    Tasks of the box and what is below them are left out.
    """
    from agentbox.host.cli.commands.data.bead_transfer import export_lines

    with open_box(cli) as client:
        write_output(file, export_lines(client))


@command.command(name="import")
@import_options("fail", "skip")
@click.argument("file")
@click.pass_obj
def import_(cli: CliContext, dry_run: bool, on_conflict: Conflict, file: str) -> None:
    """Create the beads of an export (- for stdin) that are not there, with new ids.

    A bead is found again by its dedup key, so the same import can be run again. A claimed one is
    open here. Exit 7 at a bead that differs, unless --on-conflict says otherwise.
    """
    from agentbox.host.cli.commands.data.bead_transfer import import_lines

    with open_box(cli) as client, click.open_file(file, "rb") as stream:
        counts = import_lines(client, stream, dry_run=dry_run, on_conflict=on_conflict)
    print_counts(cli.out, counts, dry_run=dry_run)
