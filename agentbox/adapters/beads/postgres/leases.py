"""Claims. The row lock decides which claim wins; the lease id in the row identifies the holder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentbox.adapters.beads.postgres.rows import (
    ANY_DUE,
    ANY_EXPIRED,
    BEAD,
    BLOCKED,
    CHANGED,
    EXPIRED,
    NOW,
    LockedBead,
    change,
    lock_bead,
)
from agentbox.adapters.beads.sqlite.leases import already_claimed, claim_of, transition_error
from agentbox.adapters.beads.sqlite.rows import bead_from_row, to_milliseconds
from agentbox.contracts.beads import Bead, Claim
from agentbox.core.clock import to_wire
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import LeaseLost
from agentbox.core.storage.postgres.database import Connection, fetch_all, fetch_one, write_pulse

READY = (
    f"b.status = 'open' AND b.kind = 'task' "
    f"AND (b.not_before IS NULL OR b.not_before <= now_ms()) AND NOT {BLOCKED}"
)


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A request of `claim_next`."""

    assignee: str
    lease_id: str
    lease_s: int
    parent_id: str | None
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueueState:
    """Whether a lease has expired, a schedule is due, a bead is ready, the lease id is in use."""

    has_expired: bool
    has_due: bool
    has_ready: bool
    lease_in_use: bool


async def claim(db: Connection, bead_id: str, assignee: str, lease_id: str, lease_s: int) -> Claim:
    """Claim the bead. A repeated claim with the same live lease id returns the same lease."""
    from psycopg.errors import UniqueViolation

    locked = await lock_bead(db, bead_id)
    bead = locked.bead
    if bead.status == "claimed":
        if locked.lease_id == lease_id:
            return claim_of(bead, lease_id)
        raise already_claimed(bead)
    if bead.status == "closed" or bead.kind != "task":
        reason = "it is closed" if bead.status == "closed" else f"its kind is {bead.kind}"
        raise transition_error(bead, "claimed", reason)
    if blockers := await open_blockers(db, bead_id):
        raise transition_error(bead, "claimed", "it waits for other beads", blockers)
    if bead.not_before is not None and to_milliseconds(bead.not_before) > locked.now:
        raise transition_error(
            bead, "claimed", f"it may not start before {to_wire(bead.not_before)}"
        )
    try:
        return await _grant(db, bead_id, assignee, lease_id, lease_s)
    except UniqueViolation:
        raise invalid_value("/lease_id", "holds another bead") from None


async def claim_batch(db: Connection, requests: Sequence[ClaimRequest]) -> list[Claim | None]:
    """Claim the first ready beads not locked by other transactions, one for each request.
    Returns None where there is none, or while leases must be expired or due children created (see
    `read_queue_state`). Raises UniqueViolation if a lease id already holds a bead."""
    claims: dict[str, Claim] = {}
    for group in dict.fromkeys((request.parent_id, request.tags) for request in requests):
        members = [request for request in requests if (request.parent_id, request.tags) == group]
        where, values = _ready_condition(members[0])
        lease_values = [
            value
            for request in members
            for value in (request.assignee, request.lease_id, request.lease_s * 1000)
        ]
        claimed = await fetch_all(db, _claim_sql(where, len(members)), (*values, *lease_values))
        claims |= {
            lease_id: claim_of(bead_from_row(values), lease_id) for *values, lease_id in claimed
        }
    return [claims.get(request.lease_id) for request in requests]


async def read_queue_state(db: Connection, request: ClaimRequest) -> QueueState:
    """Return why no bead was claimed."""
    where, values = _ready_condition(request)
    record = await fetch_one(
        db,
        f"""SELECT {ANY_EXPIRED}, {ANY_DUE},
        EXISTS (SELECT 1 FROM beads b WHERE {where}), EXISTS (SELECT 1 FROM beads b
        WHERE b.lease_id = %s AND b.status = 'claimed')""",
        (*values, request.lease_id),
    )
    assert record is not None
    return QueueState(*record)


async def find_claim(db: Connection, lease_id: str) -> Claim | None:
    """Return the live claim of the lease."""
    record = await fetch_one(
        db,
        (
            f"SELECT {BEAD} FROM beads b WHERE b.lease_id = %s AND b.status = 'claimed' "
            f"AND NOT {EXPIRED}"
        ),
        (lease_id,),
    )
    return None if record is None else claim_of(bead_from_row(record), lease_id)


async def heartbeat(db: Connection, bead_id: str, lease_id: str, lease_s: int) -> Claim:
    """Extend the lease to `lease_s` from now."""
    require_lease(await lock_bead(db, bead_id), lease_id)
    return claim_of(
        await change(db, bead_id, sets=f", lease_expires_at = now_ms() + {lease_s * 1000}"),
        lease_id,
    )


async def sync_clock(db: Connection) -> None:
    """Store the server's time. If it is before a stored time, the clock went back: leases granted
    in the future get their full duration from now, once. Leases renewed since are not changed."""
    went_back = await fetch_one(db, "SELECT at > now_ms() FROM pulse FOR UPDATE")
    if went_back == (True,):
        await _rebase_leases(db)
    await write_pulse(db)


async def _rebase_leases(db: Connection) -> None:
    await db.execute(
        f"""UPDATE beads b SET lease_expires_at = {NOW} + b.lease_expires_at - b.updated_at
        WHERE b.status = 'claimed' AND b.updated_at > {NOW}
        AND b.lease_expires_at > b.updated_at""".encode()
    )


async def release(db: Connection, bead_id: str, lease_id: str, delay_s: int, note: str) -> Bead:
    """Reopen the bead, not before now + `delay_s`."""
    locked = await lock_bead(db, bead_id)
    require_lease(locked, lease_id)
    columns: dict[str, Any] = {
        "status": "open",
        "assignee": None,
        "lease_id": None,
        "lease_expires_at": None,
    }
    if delay_s:
        columns |= {"not_before": locked.now + delay_s * 1000, "rank": locked.now + delay_s * 1000}
    if note:
        columns["note"] = note
    return await change(db, bead_id, columns)


async def open_blockers(db: Connection, bead_id: str) -> list[str]:
    """Return the blockers that are not closed as done."""
    blockers = await fetch_all(
        db,
        "SELECT k.id FROM deps d JOIN beads k ON k.id = d.blocker_id "
        "WHERE d.bead_id = %s AND NOT (k.status = 'closed' AND k.outcome = 'done') ORDER BY k.id",
        (bead_id,),
    )
    return [blocker[0] for blocker in blockers]


def require_lease(locked: LockedBead, lease_id: str | None) -> None:
    """Raises LeaseLost unless the lease holds the bead."""
    if locked.bead.status != "claimed" or lease_id is None or locked.lease_id != lease_id:
        raise LeaseLost(
            f"cannot change bead {locked.bead.id}: this lease does not hold it", id=locked.bead.id
        )


def _claim_sql(where: str, count: int) -> str:
    """One statement, hence one transaction. The counts are literals, so that the query plan fits
    them."""
    leases = ", ".join(
        f"({number}, %s::text, %s::text, %s::bigint)" for number in range(1, count + 1)
    )
    return f"""WITH picked AS MATERIALIZED (
            SELECT b.id FROM beads b WHERE NOT {ANY_EXPIRED} AND NOT {ANY_DUE} AND {where}
            ORDER BY b.priority, b.rank, b.id LIMIT {count} FOR UPDATE OF b SKIP LOCKED
        ) UPDATE beads b SET {_claimed_columns("l.assignee", "l.lease_id", "l.ms")}
        FROM (SELECT id, row_number() OVER () AS number FROM picked) p,
            (VALUES {leases}) AS l (number, assignee, lease_id, ms)
        WHERE b.id = p.id AND l.number = p.number RETURNING {BEAD}, b.lease_id"""


def _claimed_columns(assignee: str, lease_id: str, ms: str) -> str:
    return f"""{CHANGED}, status = 'claimed', assignee = {assignee}, lease_id = {lease_id},
        lease_expires_at = now_ms() + {ms}, attempts = b.attempts + 1"""


def _ready_condition(request: ClaimRequest) -> tuple[str, list[str]]:
    where, values = READY, []
    if request.parent_id is not None:
        where += " AND b.parent_id = %s"
        values.append(request.parent_id)
    for tag in request.tags:
        where += " AND EXISTS (SELECT 1 FROM tags t WHERE t.tag = %s AND t.bead_id = b.id)"
        values.append(tag)
    return where, values


async def _grant(db: Connection, bead_id: str, assignee: str, lease_id: str, lease_s: int) -> Claim:
    record = await fetch_one(
        db,
        f"UPDATE beads b SET {_claimed_columns('%s', '%s', '%s')} WHERE b.id = %s RETURNING {BEAD}",
        (assignee, lease_id, lease_s * 1000, bead_id),
    )
    assert record is not None
    return claim_of(bead_from_row(record), lease_id)
