"""Edges between beads: a bead waits for its blockers, a parent for its children. Cycles over both
are refused."""

import apsw

from agentbox.adapters.beads.sqlite.rows import change, find
from agentbox.contracts import beads
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import CycleRefused
from agentbox.core.storage.sqlite import fetch_all

_WAITS_FOR = (
    "SELECT blocker_id FROM deps WHERE bead_id = ?1 UNION SELECT id FROM beads WHERE parent_id = ?1"
)


def add(db: apsw.Connection, now: int, bead_id: str, blocker_id: str) -> None:
    """Make the bead wait for the blocker. Raises CycleRefused with the path of the cycle."""
    bead = find(db, bead_id)
    find(db, blocker_id)
    if blocker_id in bead.blocked_by:
        return
    if (path := _find_path(db, blocker_id, bead_id)) is not None:
        raise CycleRefused(
            f"cannot make {bead_id} wait for {blocker_id}: it would close a cycle",
            path=[bead_id, *path],
        )
    if len(bead.blocked_by) >= beads.MAX_BLOCKERS:
        raise invalid_value("/blocker_id", f"exceeds the maximum of {beads.MAX_BLOCKERS} blockers")
    db.execute("INSERT INTO deps VALUES (?, ?)", (bead_id, blocker_id))
    change(db, bead_id, now)


def remove(db: apsw.Connection, now: int, bead_id: str, blocker_id: str) -> None:
    """Remove the blocker from the bead."""
    bead = find(db, bead_id)
    if blocker_id in bead.blocked_by:
        db.execute("DELETE FROM deps WHERE bead_id = ? AND blocker_id = ?", (bead_id, blocker_id))
        change(db, bead_id, now)


def _find_path(db: apsw.Connection, start: str, goal: str) -> list[str] | None:
    """Return a path along the edges, both ends included."""
    came_from: dict[str, str] = {}
    stack, visited = [start], {start}
    while stack:
        current = stack.pop()
        if current == goal:
            return backtrack(came_from, start, goal)
        for (blocker,) in fetch_all(db, _WAITS_FOR, (current,)):
            if blocker not in visited:
                visited.add(blocker)
                came_from[blocker] = current
                stack.append(blocker)
    return None


def backtrack(came_from: dict[str, str], start: str, goal: str) -> list[str]:
    """Return the path of a search from the predecessor of each step."""
    path = [goal]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]
