"""Edges between beads: a bead waits for its blockers, and a parent for its children. No cycle over both."""

import apsw

from agentbox.adapters.beads.sqlite.rows import change, find
from agentbox.contracts import beads
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import CycleRefused
from agentbox.core.storage.sqlite import rows

_WAITS_FOR = "SELECT blocker_id FROM deps WHERE bead_id = ?1 UNION SELECT id FROM beads WHERE parent_id = ?1"


def add(db: apsw.Connection, now: int, bead_id: str, blocker_id: str) -> None:
    """The bead waits for the blocker from now on. Raises CycleRefused with the path that would close."""
    bead = find(db, bead_id)
    find(db, blocker_id)
    if blocker_id in bead.blocked_by:
        return
    if (path := _path(db, blocker_id, bead_id)) is not None:
        raise CycleRefused(f"cannot make {bead_id} wait for {blocker_id}: that one waits for it", path=[bead_id, *path])
    if len(bead.blocked_by) >= beads.MAX_BLOCKERS:
        raise refuse("/blocker_id", f"is one too many: at most {beads.MAX_BLOCKERS} blockers are allowed")
    db.execute("INSERT INTO deps VALUES (?, ?)", (bead_id, blocker_id))
    change(db, bead_id, now)


def remove(db: apsw.Connection, now: int, bead_id: str, blocker_id: str) -> None:
    """The bead waits for it no more."""
    bead = find(db, bead_id)
    if blocker_id in bead.blocked_by:
        db.execute("DELETE FROM deps WHERE bead_id = ? AND blocker_id = ?", (bead_id, blocker_id))
        change(db, bead_id, now)


def _path(db: apsw.Connection, start: str, goal: str) -> list[str] | None:
    """A way along the edges, both ends included."""
    came: dict[str, str] = {}
    stack, seen = [start], {start}
    while stack:
        at = stack.pop()
        if at == goal:
            return walk_back(came, start, goal)
        for (step,) in rows(db, _WAITS_FOR, (at,)):
            if step not in seen:
                seen.add(step)
                came[step] = at
                stack.append(step)
    return None


def walk_back(came: dict[str, str], start: str, goal: str) -> list[str]:
    """The path that a search found, from the step before each step."""
    path = [goal]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]
