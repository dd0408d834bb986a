"""Edges between beads. Changes of edges are serialised, so that two transactions cannot close a
cycle together."""

from agentbox.adapters.beads.postgres.rows import change, find, lock_bead
from agentbox.adapters.beads.sqlite.deps import backtrack
from agentbox.contracts import beads
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import CycleRefused
from agentbox.core.storage.postgres.database import Connection, fetch_all

_LOCK_EDGES = "LOCK TABLE deps IN SHARE ROW EXCLUSIVE MODE"
_WAITS_FOR = (
    "SELECT blocker_id FROM deps WHERE bead_id = %s UNION SELECT id FROM beads WHERE parent_id = %s"
)


async def add(db: Connection, bead_id: str, blocker_id: str) -> None:
    """Make the bead wait for the blocker. Raises CycleRefused with the path of the cycle."""
    await db.execute(_LOCK_EDGES)
    bead = (await lock_bead(db, bead_id)).bead
    await find(db, blocker_id)
    if blocker_id in bead.blocked_by:
        return
    if (path := await _find_path(db, blocker_id, bead_id)) is not None:
        raise CycleRefused(
            f"cannot make {bead_id} wait for {blocker_id}: it would close a cycle",
            path=[bead_id, *path],
        )
    if len(bead.blocked_by) >= beads.MAX_BLOCKERS:
        raise invalid_value("/blocker_id", f"exceeds the maximum of {beads.MAX_BLOCKERS} blockers")
    await db.execute("INSERT INTO deps VALUES (%s, %s)", (bead_id, blocker_id))
    await change(db, bead_id)


async def remove(db: Connection, bead_id: str, blocker_id: str) -> None:
    """Remove the blocker from the bead."""
    await db.execute(_LOCK_EDGES)
    bead = (await lock_bead(db, bead_id)).bead
    if blocker_id in bead.blocked_by:
        await db.execute(
            "DELETE FROM deps WHERE bead_id = %s AND blocker_id = %s", (bead_id, blocker_id)
        )
        await change(db, bead_id)


async def _find_path(db: Connection, start: str, goal: str) -> list[str] | None:
    """Return a path along the edges, both ends included."""
    came_from: dict[str, str] = {}
    stack, visited = [start], {start}
    while stack:
        current = stack.pop()
        if current == goal:
            return backtrack(came_from, start, goal)
        for (blocker,) in await fetch_all(db, _WAITS_FOR, (current, current)):
            if blocker not in visited:
                visited.add(blocker)
                came_from[blocker] = current
                stack.append(blocker)
    return None
