"""`agentbox pod`: named objects of the box, in containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.listing import (
    MAX_PAGE,
    PAGE_SIZE,
    Page,
    each_item,
    listing_of,
    open_box,
    read_page,
)
from agentbox.host.cli.table import print_fields, print_table
from agentbox.host.cli.transfer import Conflict, import_options, print_counts, write_output

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.pods import PodMeta

_BLOCK = 1 << 18
ALL = click.option("--all", "everything", is_flag=True, help="All of them, not the first 100.")
IF_MATCH = click.option(
    "--if-match", default=None, metavar="ETAG", help="Only if it still has this etag; else exit 7."
)


@click.group(name="pod")
def command() -> None:
    """Manage pods, the named objects of the box.

    PATH is a/b for an object and a/b/ for a container, which exists while something is in it.
    """


@command.command()
@ALL
@click.argument("path", default="")
@click.pass_obj
def ls(cli: CliContext, everything: bool, path: str) -> None:
    """List the members of a container: size, type, time, path."""
    with open_box(cli) as client:
        members = read_page(cli.out, members_of(client, path), everything=everything)
    cli.out.document(members)
    print_table(
        cli.out,
        [
            (meta["size"], meta["content_type"] or "container", meta["modified_at"], meta["path"])
            for meta in members
        ],
        whole=(3,),
    )


@command.command()
@ALL
@click.argument("path", default="")
@click.pass_obj
def tree(cli: CliContext, everything: bool, path: str) -> None:
    """Show a container with all that is below it."""
    rows: list[tuple[int, Any]] = []
    with open_box(cli) as client:
        for level, meta in walk(client, path):
            if not everything and len(rows) == PAGE_SIZE:
                cli.out.note(f"agentbox: the first {len(rows)}; --all lists the rest too")
                break
            rows.append((level, meta))
    cli.out.document([{**meta, "level": level} for level, meta in rows])
    for level, meta in rows:
        name = meta["path"].removesuffix("/").rpartition("/")[2]
        end = "/" if meta["kind"] == "container" else f"  {meta['size']}"
        cli.out.line(f"{'  ' * level}{escape_invisible(name)}{end}")


@command.command()
@click.argument("path")
@click.pass_obj
def stat(cli: CliContext, path: str) -> None:
    """Show size, type, etag and time of an object or a container."""
    with open_box(cli) as client:
        _print_meta(cli, client.pods.head(path))


@command.command()
@click.argument("path")
@click.argument("file", default="-")
@click.pass_obj
def get(cli: CliContext, path: str, file: str) -> None:
    """Copy an object to FILE, or to standard output. An existing FILE is replaced at the end."""
    with open_box(cli) as client, client.pods.open(path) as (_meta, chunks):
        write_output(file, chunks)


@command.command()
@click.option("--type", "content_type", default=None, metavar="T", help="[default: by the name]")
@click.option("--new", is_flag=True, help="Only if there is no such object; else exit 7.")
@IF_MATCH
@click.argument("path")
@click.argument("file")
@click.pass_obj
def put(
    cli: CliContext,
    content_type: str | None,
    new: bool,
    if_match: str | None,
    path: str,
    file: str,
) -> None:
    """Store FILE (- for stdin) as the object PATH."""
    if content_type is None:
        import mimetypes

        content_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    with open_box(cli) as client, click.open_file(file, "rb") as stream:
        blocks = iter(lambda: stream.read(_BLOCK), b"")
        client.pods.write(
            path,
            blocks,
            content_type=content_type,
            if_match=if_match,
            if_none_match="*" if new else None,
        )
        _print_meta(cli, client.pods.head(path))


@command.command()
@click.option("--new", is_flag=True, help="Only if TARGET does not exist; else exit 7.")
@click.argument("source")
@click.argument("target")
@click.pass_obj
def cp(cli: CliContext, new: bool, source: str, target: str) -> None:
    """Copy the object SOURCE to the object TARGET; both are paths of pods.

    `get` and `put` copy from and to files of this machine.
    """
    with open_box(cli) as client, client.pods.open(source) as (meta, chunks):
        client.pods.write(
            target,
            chunks,
            content_type=meta.content_type,
            if_none_match="*" if new else None,
        )
        _print_meta(cli, client.pods.head(target))


@command.command()
@click.option("--recursive", "-r", is_flag=True, help="A container with all that is below it.")
@IF_MATCH
@click.argument("path")
@click.pass_obj
def rm(cli: CliContext, recursive: bool, if_match: str | None, path: str) -> None:
    """Remove an object or an empty container. Exit 7 for a container that is not empty."""
    if recursive and not (path.endswith("/") or path == ""):
        raise click.UsageError("--recursive needs a container: a PATH that ends with /.")
    if recursive and if_match is not None:
        raise click.UsageError("--if-match is for one object.")
    removed: list[str] = []
    with open_box(cli) as client:
        below = [meta["path"] for _level, meta in walk(client, path)] if recursive else []
        removed.extend(
            name
            for name in [*reversed(below), *([path] if path else [])]
            if _remove(client, name, if_match, may_be_gone=recursive)
        )
    cli.out.document({"removed": removed})
    cli.out.line(f"removed {len(removed)}" if recursive else f"removed {path}")


@command.command()
@click.argument("path", default="")
@click.argument("file", default="-")
@click.pass_obj
def export(cli: CliContext, path: str, file: str) -> None:
    """Write all objects below a container to FILE, or to standard output, as a tar.

    A PATH of "" is everything. Names in the tar are whole paths of pods.
    """
    from agentbox.host.cli.commands.data.pod_archive import archive

    with open_box(cli) as client:
        objects = (meta for _level, meta in walk(client, path) if meta["kind"] == "object")
        write_output(file, archive(client, objects))


@command.command(name="import")
@import_options("fail", "skip", "replace")
@click.argument("file")
@click.pass_obj
def import_(cli: CliContext, dry_run: bool, on_conflict: Conflict, file: str) -> None:
    """Store the files of a tar (- for stdin) under their names.

    An equal object counts as unchanged, so the same import can be run again. Exit 7 at an object
    that differs, unless --on-conflict says otherwise.
    """
    from agentbox.host.cli.commands.data.pod_archive import unpack

    with open_box(cli) as client, click.open_file(file, "rb") as stream:
        counts = unpack(client, stream, dry_run=dry_run, on_conflict=on_conflict)
    print_counts(cli.out, counts, dry_run=dry_run)


def members_of(client: BoxClient, container: str) -> Page:
    """The pages of a container."""
    return listing_of(client, "read_pod", {"path": container})


def walk(client: BoxClient, container: str) -> Iterator[tuple[int, Any]]:
    """(level, metadata) of all that is below a container; a container before its members."""
    pending = [(0, each_item(members_of(client, container), size=MAX_PAGE))]
    while pending:
        level, members = pending[-1]
        meta = next(members, None)
        if meta is None:
            pending.pop()
            continue
        yield level, meta
        if meta["kind"] == "container":
            inside = members_of(client, meta["path"])
            pending.append((level + 1, each_item(inside, size=MAX_PAGE)))


def _remove(client: BoxClient, path: str, if_match: str | None, *, may_be_gone: bool) -> bool:
    """Whether it was there. Containers go with their last member."""
    from agentbox.client import ApiError

    try:
        client.pods.delete(path, if_match=if_match)
    except ApiError as error:
        if may_be_gone and error.status == 404:
            return False
        raise
    return True


def _print_meta(cli: CliContext, meta: PodMeta) -> None:
    wire = meta.to_wire()
    cli.out.document(wire)
    print_fields(cli.out, list(wire.items()))
