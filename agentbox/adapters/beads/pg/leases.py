"""Claims. The row lock is what makes one claimer win; the lease id in the row is what makes it the holder."""

from dataclasses import dataclass
from typing import Any

from agentbox.adapters.beads.contract import Bead, Claim
from agentbox.adapters.beads.leases import claim_of, refused, taken
from agentbox.adapters.beads.pg.rows import BEAD, BLOCKED, CHANGED, DUE, OVER, Held, change, hold
from agentbox.adapters.beads.rows import bead_of, ms
from agentbox.adapters.errors import LeaseLost
from agentbox.adapters.postgres import Connection, row, rows
from agentbox.adapters.wire import refuse
from agentbox.clock import to_wire

READY = (
    f"b.status = 'open' AND b.kind = 'task' AND (b.not_before IS NULL OR b.not_before <= now_ms()) AND NOT {BLOCKED}"
)
_GRANT = f"""{CHANGED}, status = 'claimed', assignee = %s, lease_id = %s, lease_expires_at = now_ms() + %s,
    attempts = b.attempts + 1"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `claim_next` asks for."""

    assignee: str
    lease_id: str
    lease_s: int
    parent_id: str | None
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """Whether a lease is over, a schedule is due, a bead is ready, and the lease holds one."""

    over: bool
    due: bool
    ready: bool
    held: bool


async def claim(db: Connection, bead_id: str, assignee: str, lease_id: str, lease_s: int) -> Claim:
    """A lease on that bead; the same one when the same live lease id asks again."""
    from psycopg.errors import UniqueViolation

    held = await hold(db, bead_id)
    bead = held.bead
    if bead.status == "claimed":
        if held.lease_id == lease_id:
            return claim_of(bead, lease_id)
        raise taken(bead)
    if bead.status == "closed" or bead.kind != "task":
        what = "it is closed" if bead.status == "closed" else f"it is of kind {bead.kind}"
        raise refused(bead, "claimed", what)
    if blockers := await open_blockers(db, bead_id):
        raise refused(bead, "claimed", "it waits for other beads", blockers)
    if bead.not_before is not None and ms(bead.not_before) > held.now:
        raise refused(bead, "claimed", f"it may not start before {to_wire(bead.not_before)}")
    try:
        return await _grant(db, bead_id, assignee, lease_id, lease_s)
    except UniqueViolation:
        raise refuse("/lease_id", "holds another bead") from None


async def take_next(db: Connection, wanted: Wanted) -> Claim | None:
    """A lease on the first ready bead that nobody else is just taking; one statement, and so one transaction.

    None where there is none, and while something has to be settled or made first. Raises UniqueViolation when that lease
    holds a bead already. The usual case alone: `look` says what else there is.
    """
    where, values = _ready_to(wanted)
    found = await row(
        db,
        f"""UPDATE beads b SET {_GRANT} WHERE b.id = (
            SELECT b.id FROM beads b WHERE NOT EXISTS (SELECT 1 FROM beads b WHERE {OVER}) AND NOT EXISTS (SELECT 1 FROM beads b WHERE {DUE}) AND {where}
            ORDER BY b.priority, b.rank, b.id LIMIT 1 FOR UPDATE OF b SKIP LOCKED
        ) RETURNING {BEAD}""",
        (wanted.assignee, wanted.lease_id, wanted.lease_s * 1000, *values),
    )
    return None if found is None else claim_of(bead_of(found), wanted.lease_id)


async def look(db: Connection, wanted: Wanted) -> Seen:
    """Why nothing was taken."""
    where, values = _ready_to(wanted)
    found = await row(
        db,
        f"""SELECT EXISTS (SELECT 1 FROM beads b WHERE {OVER}), EXISTS (SELECT 1 FROM beads b WHERE {DUE}),
        EXISTS (SELECT 1 FROM beads b WHERE {where}), EXISTS (SELECT 1 FROM beads b WHERE b.lease_id = %s AND b.status = 'claimed')""",
        (*values, wanted.lease_id),
    )
    assert found is not None
    return Seen(*found)


async def held_by(db: Connection, lease_id: str) -> Claim | None:
    """The live claim of that lease."""
    found = await row(
        db, f"SELECT {BEAD} FROM beads b WHERE b.lease_id = %s AND b.status = 'claimed' AND NOT {OVER}", (lease_id,)
    )
    return None if found is None else claim_of(bead_of(found), lease_id)


async def heartbeat(db: Connection, bead_id: str, lease_id: str, lease_s: int) -> Claim:
    """The lease, good for `lease_s` from now."""
    require_lease(await hold(db, bead_id), lease_id)
    return claim_of(await change(db, bead_id, sets=f", lease_expires_at = now_ms() + {lease_s * 1000}"), lease_id)


async def release(db: Connection, bead_id: str, lease_id: str, delay_s: int, note: str) -> Bead:
    """The bead, open again and not before now + `delay_s`."""
    held = await hold(db, bead_id)
    require_lease(held, lease_id)
    columns: dict[str, Any] = {"status": "open", "assignee": None, "lease_id": None, "lease_expires_at": None}
    if delay_s:
        columns |= {"not_before": held.now + delay_s * 1000, "rank": held.now + delay_s * 1000}
    if note:
        columns["note"] = note
    return await change(db, bead_id, columns)


async def open_blockers(db: Connection, bead_id: str) -> list[str]:
    """The blockers that are not closed as done."""
    waiting = await rows(
        db,
        "SELECT k.id FROM deps d JOIN beads k ON k.id = d.blocker_id "
        "WHERE d.bead_id = %s AND NOT (k.status = 'closed' AND k.outcome = 'done') ORDER BY k.id",
        (bead_id,),
    )
    return [found[0] for found in waiting]


def require_lease(held: Held, lease_id: str | None) -> None:
    """Raises LeaseLost unless that lease holds the bead now."""
    if held.bead.status != "claimed" or lease_id is None or held.lease_id != lease_id:
        raise LeaseLost(f"cannot change bead {held.bead.id}: this lease does not hold it", id=held.bead.id)


def _ready_to(wanted: Wanted) -> tuple[str, list[str]]:
    where, values = READY, []
    if wanted.parent_id is not None:
        where += " AND b.parent_id = %s"
        values.append(wanted.parent_id)
    for tag in wanted.tags:
        where += " AND EXISTS (SELECT 1 FROM tags t WHERE t.tag = %s AND t.bead_id = b.id)"
        values.append(tag)
    return where, values


async def _grant(db: Connection, bead_id: str, assignee: str, lease_id: str, lease_s: int) -> Claim:
    found = await row(
        db,
        f"UPDATE beads b SET {_GRANT} WHERE b.id = %s RETURNING {BEAD}",
        (assignee, lease_id, lease_s * 1000, bead_id),
    )
    assert found is not None
    return claim_of(bead_of(found), lease_id)
