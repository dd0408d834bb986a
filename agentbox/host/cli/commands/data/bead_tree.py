"""The tree of beads: each with those below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from agentbox.host.cli.listing import MAX_PAGE, PAGE_SIZE, each_item, listing_of
from agentbox.host.cli.output import Output

if TYPE_CHECKING:
    from agentbox.client import BoxClient

Bead = Mapping[str, Any]
Children = Callable[["str | None"], list[Bead]]  # of a bead; None: those without a parent


def walk(
    out: Output, client: BoxClient, top: Bead | None, *, everything: bool
) -> list[tuple[int, Bead]]:
    """(level, bead) from `top` on, or from all beads without a parent; parents first, then in order
    of id. At most 100 unless `everything`; says on stderr when there are more."""
    children = _all_children(client) if everything else _asked_children(client)
    rows: list[tuple[int, Bead]] = []
    pending = [(0, bead) for bead in reversed([top] if top is not None else children(None))]
    while pending:
        if not everything and len(rows) == PAGE_SIZE:
            out.note(f"agentbox: the first {len(rows)}; --all lists the rest too")
            break
        level, bead = pending.pop()
        rows.append((level, bead))
        pending += [(level + 1, below) for below in reversed(children(bead["id"]))]
    return rows


def _asked_children(client: BoxClient) -> Children:
    """Asks the box once a bead: good for one page."""

    def children(parent: str | None) -> list[Bead]:
        queries: list[dict[str, Any]] = [{"parent_id": parent}]
        if parent is None:
            queries = [{"kind": "epic"}, {"kind": "schedule"}]
        found: list[Bead] = []
        for query in queries:
            beads = each_item(listing_of(client, "list_beads", **query))
            found += islice((bead for bead in beads if bead["parent_id"] == parent), PAGE_SIZE + 1)
        return sorted(found, key=lambda bead: str(bead["id"]))

    return children


def _all_children(client: BoxClient) -> Children:
    """Reads all beads once."""
    below: dict[str | None, list[Bead]] = defaultdict(list)
    for bead in each_item(listing_of(client, "list_beads"), size=MAX_PAGE):
        below[bead["parent_id"]].append(bead)
    return lambda parent: below[parent]
