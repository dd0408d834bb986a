"""Export and import of memory entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from agentbox.contracts.memory import CONTRACT_VERSION, MemoryEntry
from agentbox.core import clock
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

_KIND = "memory"


def export_lines(client: BoxClient, namespaces: Iterable[str]) -> Iterator[bytes]:
    """The entries of these namespaces, of all without any."""
    names = list(namespaces) or client.call("memory_stats")["namespaces"]
    entries = (
        entry
        for name in names
        for entry in each_item(listing_of(client, "list_memory", {"ns": name}), size=MAX_PAGE)
    )
    return lines_of(client, _KIND, CONTRACT_VERSION, entries)


def import_lines(
    client: BoxClient, stream: IO[bytes], *, dry_run: bool, on_conflict: Conflict
) -> Counts:
    """Stores each entry under its namespace and key with the rest of its time to live; one that has
    expired is left out. Raises AgentboxError: exit 2 for a bad line, exit 7 at a conflict."""
    counts = Counts()
    for number, row in read_lines(stream, _KIND, CONTRACT_VERSION):
        try:
            entry = MemoryEntry.from_wire(row)
        except ValidationError as error:
            raise line_error(number, f"no memory entry: {error}") from error
        counts[_import_entry(client, number, entry, dry_run, on_conflict)] += 1
    return counts


def _import_entry(
    client: BoxClient, number: int, entry: MemoryEntry, dry_run: bool, on_conflict: Conflict
) -> str:
    """What was done with it, or would be."""
    ttl = None if entry.expires_at is None else _remaining(entry.expires_at)
    if ttl is not None and ttl <= 0:
        return "left out"
    stored = client.memory.retrieve(entry.key, namespace=entry.namespace)
    result = "new"
    if stored is not None:
        if _content(stored) == _content(entry):
            return "unchanged"
        if on_conflict == "skip":
            return "skipped"
        if on_conflict == "fail":
            raise conflict_error(number, f"{entry.namespace}/{entry.key}")
        result = "replaced"
    if not dry_run:
        client.memory.store(
            entry.key,
            entry.value,
            namespace=entry.namespace,
            text=entry.text,
            metadata=entry.metadata,
            ttl_s=ttl,
        )
    return result


def _content(entry: MemoryEntry) -> tuple[Any, ...]:
    return entry.value, entry.text, dict(entry.metadata)


def _remaining(moment: datetime) -> int:
    """Seconds from now, rounded up."""
    return -int((clock.now() - moment).total_seconds() // 1)
