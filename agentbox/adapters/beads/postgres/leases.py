"""Claims. The row lock is what makes one claimer win; the lease id in the row is what makes it the holder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentbox.adapters.beads.postgres.rows import (
    ANY_DUE,
    ANY_OVER,
    BEAD,
    BLOCKED,
    CHANGED,
    NOW,
    OVER,
    Held,
    change,
    hold,
)
from agentbox.adapters.beads.sqlite.leases import claim_of, refused, taken
from agentbox.adapters.beads.sqlite.rows import bead_of, ms
from agentbox.contracts.beads import Bead, Claim
from agentbox.core.clock import to_wire
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import LeaseLost
from agentbox.core.storage.postgres.database import Connection, beat, row, rows

READY = (
    f"b.status = 'open' AND b.kind = 'task' AND (b.not_before IS NULL OR b.not_before <= now_ms()) AND NOT {BLOCKED}"
)


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


async def take_next(db: Connection, wanted: Sequence[Wanted]) -> list[Claim | None]:
    """A lease for each on the first ready beads that nobody else is just taking. None where there is none, and while something
    has to be settled or made first; `look` says which. Raises UniqueViolation when one of the leases holds a bead already."""
    taken: dict[str, Claim] = {}
    for kind in dict.fromkeys((one.parent_id, one.tags) for one in wanted):
        alike = [one for one in wanted if (one.parent_id, one.tags) == kind]
        where, values = _ready_to(alike[0])
        leases = [value for one in alike for value in (one.assignee, one.lease_id, one.lease_s * 1000)]
        found = await rows(db, _take(where, len(alike)), (*values, *leases))
        taken |= {lease_id: claim_of(bead_of(values), lease_id) for *values, lease_id in found}
    return [taken.get(one.lease_id) for one in wanted]


async def look(db: Connection, wanted: Wanted) -> Seen:
    """Why nothing was taken."""
    where, values = _ready_to(wanted)
    found = await row(
        db,
        f"""SELECT {ANY_OVER}, {ANY_DUE},
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


async def follow_clock(db: Connection) -> None:
    """Writes down the server's time, in a transaction. Where it is before what any box has written, the clock went back: a lease
    that was granted later than now has what it was granted from now on, once. One that was renewed since ends as it says."""
    found = await row(db, "SELECT at > now_ms() FROM pulse FOR UPDATE")
    if found == (True,):
        await _bring_back(db)
    await beat(db)


async def _bring_back(db: Connection) -> None:
    await db.execute(
        f"""UPDATE beads b SET lease_expires_at = {NOW} + b.lease_expires_at - b.updated_at
        WHERE b.status = 'claimed' AND b.updated_at > {NOW} AND b.lease_expires_at > b.updated_at""".encode()
    )


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


def _take(where: str, count: int) -> str:
    """One statement, and so one transaction. Its counts are written out, so that its plan is made for so many."""
    leases = ", ".join(f"({number}, %s::text, %s::text, %s::bigint)" for number in range(1, count + 1))
    return f"""WITH picked AS MATERIALIZED (
            SELECT b.id FROM beads b WHERE NOT {ANY_OVER} AND NOT {ANY_DUE} AND {where}
            ORDER BY b.priority, b.rank, b.id LIMIT {count} FOR UPDATE OF b SKIP LOCKED
        ) UPDATE beads b SET {_granted("l.assignee", "l.lease_id", "l.ms")}
        FROM (SELECT id, row_number() OVER () AS number FROM picked) p, (VALUES {leases}) AS l (number, assignee, lease_id, ms)
        WHERE b.id = p.id AND l.number = p.number RETURNING {BEAD}, b.lease_id"""


def _granted(assignee: str, lease_id: str, ms: str) -> str:
    return f"""{CHANGED}, status = 'claimed', assignee = {assignee}, lease_id = {lease_id},
        lease_expires_at = now_ms() + {ms}, attempts = b.attempts + 1"""


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
        f"UPDATE beads b SET {_granted('%s', '%s', '%s')} WHERE b.id = %s RETURNING {BEAD}",
        (assignee, lease_id, lease_s * 1000, bead_id),
    )
    assert found is not None
    return claim_of(bead_of(found), lease_id)
