"""Removes spool entries without a task, left by a crash between writing an entry and creating its
bead.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentbox.api.tasks.beads import spool_ref
from agentbox.api.tasks.spool import Spool, SpoolEntry
from agentbox.contracts.beads import BeadFilter

if TYPE_CHECKING:
    from agentbox.contracts.beads import Beads, Status

_PAGE = 500


async def remove_orphans(
    beads: "Beads", epic: str, spool: Spool, entries: Iterable[SpoolEntry]
) -> int:
    """Removes those of `entries` that no open child of `epic` names, and returns their number.
    `entries` was read before anything could be submitted, and contains no running one. Raises
    AdapterError and OSError; then some may be removed already.
    """
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
