"""Export and import of beads.

Ids, times and attempts of a box stay there: an import makes new beads, found again by their
`dedup_key`. Tasks of the box and what is below them are not exported and not imported, since a box
runs what is below its epic for tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from agentbox.contracts.beads import CONTRACT_VERSION, Bead
from agentbox.core.slot_errors import ValidationError
from agentbox.host.cli.listing import MAX_PAGE, each_item, listing_of
from agentbox.host.cli.transfer import (
    Conflict,
    Counts,
    conflict_error,
    line_error,
    lines_of,
    read_lines,
)

if TYPE_CHECKING:
    from agentbox.client import BoxClient

_KIND = "beads"
_RESERVED = "agentbox:"  # beads of the box itself
_IMPORTED = "import:"  # and the id in the other box, for a bead without a key
_CONTENT = ("kind", "title", "body", "priority", "tags", "data", "every", "overlap", "max_attempts")


def export_lines(client: BoxClient) -> Iterator[bytes]:
    """All beads in order of id, but tasks of the box."""
    left_out = _of_the_box(client)
    beads = (bead for bead in _all_beads(client) if bead["id"] not in left_out)
    return lines_of(client, _KIND, CONTRACT_VERSION, beads)


def import_lines(
    client: BoxClient, stream: IO[bytes], *, dry_run: bool, on_conflict: Conflict
) -> Counts:
    """Creates each bead that is not there, below its parent, then dependencies, then closes what is
    closed there. Raises AgentboxError: exit 2 for a bad line, exit 7 at a conflict."""
    work = _Import(client, dry_run, on_conflict)
    waiting: list[tuple[int, Bead]] = []
    for number, row in read_lines(stream, _KIND, CONTRACT_VERSION):
        try:
            bead = Bead.from_wire(row)
        except ValidationError as error:
            raise line_error(number, f"no bead: {error}") from error
        waiting.append((number, bead))
        waiting = work.create_all(waiting)
    if waiting:
        number, bead = waiting[0]
        raise line_error(number, f"its parent {bead.parent_id} is not in the import")
    work.add_dependencies()
    work.close_all()
    return work.counts


@dataclass
class _Import:
    """One import. `ids` has the id here of each bead there; in a dry run that of there for a bead
    that would be new."""

    client: BoxClient
    dry_run: bool
    on_conflict: Conflict
    counts: Counts = field(default_factory=Counts)
    ids: dict[str, str] = field(default_factory=dict)
    rows: list[Bead] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._by_id: dict[str, Mapping[str, Any]] = {}
        self._by_key: dict[str, Mapping[str, Any]] = {}
        for bead in _all_beads(self.client):
            self._by_id[bead["id"]] = bead
            if bead["dedup_key"] is not None:
                self._by_key[bead["dedup_key"]] = bead
        self._reserved: set[str] = set()

    def create_all(self, waiting: list[tuple[int, Bead]]) -> list[tuple[int, Bead]]:
        """Creates what has its parent; the rest."""
        while True:
            rest = [(number, bead) for number, bead in waiting if not self._create(number, bead)]
            if len(rest) == len(waiting) or not rest:
                return rest
            waiting = rest

    def add_dependencies(self) -> None:
        """A blocker that is not in the import is left out."""
        for bead in self.rows:
            id = self.ids[bead.id]
            have = self._by_id.get(id, {}).get("blocked_by", ())
            wanted = [self.ids[other] for other in bead.blocked_by if other in self.ids]
            for blocker in wanted:
                if blocker not in have and not self.dry_run:
                    self.client.beads.add_dep(id, blocker)

    def close_all(self) -> None:
        """In the order in which they were closed, children before their parents."""
        depth: dict[str, int] = {}
        for bead in self.rows:
            depth[bead.id] = depth.get(bead.parent_id or "", 0) + 1
        closed = [bead for bead in self.rows if bead.closed_at is not None]
        for bead in sorted(closed, key=lambda bead: (str(bead.closed_at), -depth[bead.id])):
            id = self.ids[bead.id]
            if self._by_id.get(id, {}).get("status") == "closed":
                continue
            self.counts["closed"] += 1
            if not self.dry_run:
                self.client.beads.close_bead(
                    id, outcome=bead.outcome or "done", note=bead.note, result=bead.result
                )

    def _create(self, number: int, bead: Bead) -> bool:
        """False if it has to wait for its parent."""
        if self._is_of_a_box(bead):
            self._reserved.add(bead.id)
            self.counts["left out"] += 1
            return True
        if bead.parent_id is not None and bead.parent_id not in self.ids:
            return False
        if (stored := self._find(bead)) is not None:
            self.ids[bead.id] = stored["id"]
            self._count_stored(number, bead, stored)
        else:
            self.ids[bead.id] = bead.id if self.dry_run else self._make(bead)
            self.counts["new"] += 1
        self.rows.append(bead)
        return True

    def _is_of_a_box(self, bead: Bead) -> bool:
        key = bead.dedup_key or ""
        return key.startswith(_RESERVED) or bead.parent_id in self._reserved

    def _find(self, bead: Bead) -> Mapping[str, Any] | None:
        """The bead here: by id in the box that it is of, else by its key."""
        origin = (bead.dedup_key or "").removeprefix(_IMPORTED)
        for stored in (self._by_id.get(bead.id), self._by_id.get(origin)):
            if stored is not None:
                return stored
        return self._by_key.get(_key(bead))

    def _count_stored(self, number: int, bead: Bead, stored: Mapping[str, Any]) -> None:
        wire = bead.to_wire()
        if all(wire[name] == stored[name] for name in _CONTENT):
            self.counts["unchanged"] += 1
        elif self.on_conflict == "skip":
            self.counts["skipped"] += 1
        else:
            raise conflict_error(number, f"the bead {stored['id']}")

    def _make(self, bead: Bead) -> str:
        options: dict[str, Any] = {
            "creator": bead.creator,
            "body": bead.body,
            "priority": bead.priority,
            "tags": bead.tags,
            "data": bead.data,
            "dedup_key": _key(bead),
            "not_before": bead.not_before,
            "every": bead.every,
            "overlap": bead.overlap,
            "max_attempts": bead.max_attempts,
        }
        beads = self.client.beads
        if bead.parent_id is None:
            made, _ = beads.create_epic(bead.title, **options)
        else:
            made, _ = beads.create_child(self.ids[bead.parent_id], bead.title, **options)
        return made.id


def _key(bead: Bead) -> str:
    return bead.dedup_key if bead.dedup_key is not None else f"{_IMPORTED}{bead.id}"


def _all_beads(client: BoxClient) -> Iterator[Mapping[str, Any]]:
    return each_item(listing_of(client, "list_beads"), size=MAX_PAGE)


def _of_the_box(client: BoxClient) -> set[str]:
    """The ids of the box's own beads and of all below them."""
    epics = each_item(listing_of(client, "list_beads", kind="epic"), size=MAX_PAGE)
    found = [epic["id"] for epic in epics if (epic["dedup_key"] or "").startswith(_RESERVED)]
    below: dict[str, list[str]] = {}
    if found:
        for bead in _all_beads(client):
            below.setdefault(bead["parent_id"] or "", []).append(bead["id"])
    left_out: set[str] = set()
    while found:
        id = found.pop()
        left_out.add(id)
        found += below.get(id, [])
    return left_out
