"""Rows as records, row locks, and the expiry of leases."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agentbox.adapters.beads.sqlite.leases import EXHAUSTED
from agentbox.adapters.beads.sqlite.rows import COLUMNS, bead_from_row
from agentbox.contracts.beads import Bead
from agentbox.core.slot_errors import NotFound
from agentbox.core.storage.postgres.database import Connection, fetch_all, fetch_one

BEAD = (
    ", ".join(f"b.{name}" for name in COLUMNS)
    + ", CASE WHEN b.has_blockers THEN blockers(b.id) ELSE '[]' END"
)
SELECT = f"SELECT {BEAD} FROM beads b "
# once per statement, so that an index can be used; `now_ms()` is cheaper for single rows
NOW = "(SELECT now_ms())"
CHANGED = (
    "revision = b.revision + 1, updated_at = greatest(b.updated_at, now_ms())"  # of every UPDATE
)
EXPIRED = f"(b.status = 'claimed' AND b.lease_expires_at <= {NOW})"
DUE = f"(b.status = 'open' AND b.next_due <= {NOW})"
# Ordered by the index, not EXISTS: for EXISTS the planner expects an early row and scans the whole
# table.
ANY_EXPIRED = (
    f"coalesce((SELECT TRUE FROM beads b WHERE {EXPIRED} ORDER BY b.lease_expires_at "
    f"LIMIT 1), FALSE)"
)
ANY_DUE = f"coalesce((SELECT TRUE FROM beads b WHERE {DUE} ORDER BY b.next_due LIMIT 1), FALSE)"
_ATTEMPTS_EXHAUSTED = "b.attempts >= b.max_attempts"
_EXPIRED_COLUMNS = f"""
    status = CASE WHEN {_ATTEMPTS_EXHAUSTED} THEN 'closed' ELSE 'open' END,
    outcome = CASE WHEN {_ATTEMPTS_EXHAUSTED} THEN 'failed' END,
    note = CASE WHEN {_ATTEMPTS_EXHAUSTED} THEN '{EXHAUSTED}' ELSE b.note END,
    closed_at = CASE WHEN {_ATTEMPTS_EXHAUSTED} THEN now_ms() END,
    assignee = NULL, lease_id = NULL, lease_expires_at = NULL
"""
# A bead is blocked while one of its blockers is not closed as done. Few beads have blockers; the
# others skip the check.
BLOCKED = "(b.has_blockers AND waits(b.id))"


@dataclass(frozen=True, slots=True)
class LockedBead:
    """A bead whose row this transaction has locked, and its lease id, which never leaves this
    package."""

    bead: Bead
    lease_id: str | None
    now: int


async def find(db: Connection, bead_id: str) -> tuple[Bead, bool]:
    """Return the bead as stored, and whether its lease has expired. Raises NotFound."""
    record = await fetch_one(
        db, f"SELECT {BEAD}, {EXPIRED} FROM beads b WHERE b.id = %s", (bead_id,)
    )
    if record is None:
        raise bead_not_found(bead_id)
    return bead_from_row(record[:-1]), bool(record[-1])


async def lock_bead(db: Connection, bead_id: str) -> LockedBead:
    """Return the bead with expired leases finalised and its row locked until the transaction ends.
    Raises NotFound."""
    record = await fetch_one(
        db,
        (
            f"SELECT {BEAD}, b.lease_id, now_ms(), {EXPIRED} FROM beads b WHERE b.id = %s "
            f"FOR UPDATE OF b"
        ),
        (bead_id,),
    )
    if record is None:
        raise bead_not_found(bead_id)
    *values, lease_id, now, expired = record
    if expired:
        return LockedBead(await _expire_lease(db, bead_id), None, now)
    return LockedBead(bead_from_row(values), lease_id, now)


async def raw_beads(db: Connection, where: str, values: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return the rows, for `bead_from_row`, of a query that continues after `FROM beads b`."""
    return await fetch_all(db, SELECT + where, values)


async def change(
    db: Connection, bead_id: str, columns: dict[str, Any] | None = None, sets: str = ""
) -> Bead:
    """Set columns, increment the revision and return the bead. `updated_at` never decreases. `sets`
    is SQL."""
    assignments = "".join(f", {name} = %s" for name in columns or {})
    changed = await fetch_one(
        db,
        f"UPDATE beads b SET {CHANGED}{sets}{assignments} WHERE b.id = %s RETURNING {BEAD}",
        (*(columns or {}).values(), bead_id),
    )
    assert changed is not None
    return bead_from_row(changed)


async def expire_leases(db: Connection, where: str = "TRUE", values: Iterable[Any] = ()) -> None:
    """Reopen beads with expired leases, and close those without attempts left as failed. Ordered by
    id against deadlocks."""
    await db.execute(
        f"""WITH late AS MATERIALIZED (SELECT b.id FROM beads b WHERE {EXPIRED} AND {where}
        ORDER BY b.id FOR UPDATE)
        UPDATE beads b SET {CHANGED}, {_EXPIRED_COLUMNS}
        FROM late WHERE b.id = late.id AND {EXPIRED}""".encode(),
        tuple(values),
    )


def bead_not_found(bead_id: str) -> NotFound:
    """Return the error for an unknown id."""
    return NotFound(f"cannot find bead {bead_id}", resource="bead", id=bead_id)


async def _expire_lease(db: Connection, bead_id: str) -> Bead:
    return await change(db, bead_id, sets=f", {_EXPIRED_COLUMNS}")
