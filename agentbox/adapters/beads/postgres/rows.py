"""Rows as records, row locks, and the settling of leases that are over."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agentbox.adapters.beads.sqlite.leases import EXHAUSTED
from agentbox.adapters.beads.sqlite.rows import COLUMNS, bead_of
from agentbox.contracts.beads import Bead
from agentbox.core.slot_errors import NotFound
from agentbox.core.storage.postgres.database import Connection, row, rows

BEAD = ", ".join(f"b.{name}" for name in COLUMNS) + ", CASE WHEN b.has_blockers THEN blockers(b.id) ELSE '[]' END"
SELECT = f"SELECT {BEAD} FROM beads b "
NOW = "(SELECT now_ms())"  # once a statement, so that an index can be used; of the row itself `now_ms()` costs less
CHANGED = "revision = b.revision + 1, updated_at = greatest(b.updated_at, now_ms())"  # of every UPDATE
OVER = f"(b.status = 'claimed' AND b.lease_expires_at <= {NOW})"
DUE = f"(b.status = 'open' AND b.next_due <= {NOW})"
# In the order of their index and not as EXISTS: of that the planner expects a row soon, and so reads the whole table in vain.
ANY_OVER = f"coalesce((SELECT TRUE FROM beads b WHERE {OVER} ORDER BY b.lease_expires_at LIMIT 1), FALSE)"
ANY_DUE = f"coalesce((SELECT TRUE FROM beads b WHERE {DUE} ORDER BY b.next_due LIMIT 1), FALSE)"
_SPENT = "b.attempts >= b.max_attempts"
_SETTLED = f"""
    status = CASE WHEN {_SPENT} THEN 'closed' ELSE 'open' END, outcome = CASE WHEN {_SPENT} THEN 'failed' END,
    note = CASE WHEN {_SPENT} THEN '{EXHAUSTED}' ELSE b.note END, closed_at = CASE WHEN {_SPENT} THEN now_ms() END,
    assignee = NULL, lease_id = NULL, lease_expires_at = NULL
"""
# A bead waits while one of its blockers is not closed as done. Few beads have any, so the others are never asked about.
BLOCKED = "(b.has_blockers AND waits(b.id))"


@dataclass(frozen=True, slots=True)
class Held:
    """A bead whose row this transaction holds, and the lease id in it, which never leaves this package."""

    bead: Bead
    lease_id: str | None
    now: int


async def find(db: Connection, bead_id: str) -> tuple[Bead, bool]:
    """The bead as it stands, and whether its lease is over and has to be settled. Raises NotFound."""
    found = await row(db, f"SELECT {BEAD}, {OVER} FROM beads b WHERE b.id = %s", (bead_id,))
    if found is None:
        raise unknown(bead_id)
    return bead_of(found[:-1]), bool(found[-1])


async def hold(db: Connection, bead_id: str) -> Held:
    """The bead, settled, with its row locked to the end of the transaction. Raises NotFound."""
    found = await row(
        db, f"SELECT {BEAD}, b.lease_id, now_ms(), {OVER} FROM beads b WHERE b.id = %s FOR UPDATE OF b", (bead_id,)
    )
    if found is None:
        raise unknown(bead_id)
    *values, lease_id, now, over = found
    if over:
        return Held(await _settle_one(db, bead_id), None, now)
    return Held(bead_of(values), lease_id, now)


async def raw_beads(db: Connection, where: str, values: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The rows, for `bead_of`, of a query that goes on after `FROM beads b`."""
    return await rows(db, SELECT + where, values)


async def change(db: Connection, bead_id: str, columns: dict[str, Any] | None = None, sets: str = "") -> Bead:
    """Sets columns, adds 1 to the revision, and returns the bead. `updated_at` never goes back. `sets` is SQL."""
    named = "".join(f", {name} = %s" for name in columns or {})
    changed = await row(
        db,
        f"UPDATE beads b SET {CHANGED}{sets}{named} WHERE b.id = %s RETURNING {BEAD}",
        (*(columns or {}).values(), bead_id),
    )
    assert changed is not None
    return bead_of(changed)


async def settle(db: Connection, where: str = "TRUE", values: Iterable[Any] = ()) -> None:
    """Reopens the beads whose lease is over, and closes as failed those that have no attempt left. In order of id, so
    that two who settle wait for each other."""
    await db.execute(
        f"""WITH late AS MATERIALIZED (SELECT b.id FROM beads b WHERE {OVER} AND {where} ORDER BY b.id FOR UPDATE)
        UPDATE beads b SET {CHANGED}, {_SETTLED}
        FROM late WHERE b.id = late.id AND {OVER}""".encode(),
        tuple(values),
    )


def unknown(bead_id: str) -> NotFound:
    """The error for an id that no bead has."""
    return NotFound(f"cannot find bead {bead_id}: there is none", resource="bead", id=bead_id)


async def _settle_one(db: Connection, bead_id: str) -> Bead:
    return await change(db, bead_id, sets=f", {_SETTLED}")
