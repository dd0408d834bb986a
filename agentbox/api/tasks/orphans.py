"""Spool entries that no task needs: what a crash between keeping an entry and queueing its bead leaves behind."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentbox.api.tasks.spool import Spool, SpoolEntry
from agentbox.contracts.beads import BeadFilter
from agentbox.contracts.tasks import spool_ref

if TYPE_CHECKING:
    from agentbox.contracts.beads import Beads, Status

_PAGE = 500


async def remove_orphans(
    beads: "Beads", epic: str, spool: Spool, entries: Iterable[SpoolEntry]
) -> int:
    """Removes those of `kept` that no unclosed child of `epic` names, and says how many. `kept` was read before anything
    could be submitted, and holds none that is being run. Raises AdapterError and OSError; then some may be gone."""
    orphans = {entry.ref for entry in entries}
    if not orphans:
        return 0
    statuses: tuple[Status, ...] = ("open", "claimed")
    for status in statuses:
        cursor: str | None = None
        while True:
            page = await beads.list(
                BeadFilter(parent_id=epic, status=status), limit=_PAGE, cursor=cursor
            )
            orphans -= {spool_ref(bead) for bead in page.items}
            if (cursor := page.next_cursor) is None:
                break
    for ref in orphans:
        await spool.remove(ref)
    return len(orphans)
