"""Closing a bead and its descendants."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentbox.adapters.beads.postgres.rows import BEAD, CHANGED, change, expire_leases, lock_bead
from agentbox.adapters.beads.sqlite.leases import transition_error
from agentbox.adapters.beads.sqlite.rows import bead_from_row
from agentbox.contracts.beads import Bead
from agentbox.core.slot_errors import LeaseLost
from agentbox.core.storage.postgres.database import Connection, fetch_all

_SET_CLOSED = ", status = 'closed', lease_expires_at = NULL, closed_at = now_ms()"


async def close(
    db: Connection,
    bead_id: str,
    *,
    outcome: str,
    note: str,
    result: str,
    lease_id: str | None,
    forced: bool,
) -> Bead:
    """Close the bead. `result` is JSON text; `forced` closes a claimed bead without its lease."""
    locked = await lock_bead(db, bead_id)
    bead = locked.bead
    if lease_id is not None and lease_id != locked.lease_id:
        raise LeaseLost(f"cannot close bead {bead_id}: this lease does not hold it", id=bead_id)
    if bead.status == "closed":
        if bead.outcome == outcome:
            return bead
        raise transition_error(bead, "closed", f"it is already closed as {bead.outcome}")
    if bead.status == "claimed" and lease_id is None and not forced:
        raise LeaseLost(
            f"cannot close bead {bead_id}: {bead.assignee} holds it and the lease id is missing",
            id=bead_id,
        )
    if bead.kind == "epic" and outcome == "done":
        await _require_children_closed(db, bead)
    if outcome == "cancelled":
        await _cancel_descendants(db, bead_id)
    return await change(
        db, bead_id, {"outcome": outcome, "note": note, "result": result}, _SET_CLOSED
    )


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """A request of the lease holder to close its bead. `result` is JSON text."""

    bead_id: str
    lease_id: str
    outcome: str
    note: str
    result: str


async def close_by_lease(db: Connection, requests: Sequence[CloseRequest]) -> list[Bead | None]:
    """Close tasks by their valid lease in one statement. Returns None for any other bead; `close`
    handles those. Only a claimed bead has a lease expiry."""
    placeholders = ", ".join(
        f"({number}, %s::text, %s::text, %s::text, %s::text, %s::text)"
        for number in range(len(requests))
    )
    updated = await fetch_all(
        db,
        f"""UPDATE beads b SET {CHANGED}{_SET_CLOSED},
        outcome = e.outcome, note = e.note, result = e.result
        FROM (VALUES {placeholders}) AS e (number, id, lease_id, outcome, note, result)
        WHERE b.id = e.id AND b.lease_id = e.lease_id AND b.lease_expires_at > now_ms()
        AND b.kind = 'task' RETURNING {BEAD}, e.number""",
        [
            value
            for request in requests
            for value in (
                request.bead_id,
                request.lease_id,
                request.outcome,
                request.note,
                request.result,
            )
        ],
    )
    closed = {number: bead_from_row(values) for *values, number in updated}
    return [closed.get(number) for number in range(len(requests))]


async def _cancel_descendants(db: Connection, bead_id: str) -> None:
    """Cancel level by level: a locked row gets no more children, so each query sees all of them."""
    level = [bead_id]
    while level:
        children = await fetch_all(
            db, "SELECT id FROM beads WHERE parent_id = ANY(%s) ORDER BY id FOR UPDATE", (level,)
        )
        level = [row[0] for row in children]
        await expire_leases(db, "b.id = ANY(%s)", (level,))
        await db.execute(
            f"""UPDATE beads b SET {CHANGED}{_SET_CLOSED},
            outcome = 'cancelled', note = %s WHERE b.id = ANY(%s)
            AND b.status != 'closed'""".encode(),
            (f"cancelled with {bead_id}", level),
        )


async def _require_children_closed(db: Connection, bead: Bead) -> None:
    await expire_leases(db, "b.parent_id = %s", (bead.id,))
    unclosed_rows = await fetch_all(
        db,
        "SELECT id FROM beads WHERE parent_id = %s AND status != 'closed' ORDER BY id LIMIT 100",
        (bead.id,),
    )
    if unclosed := [row[0] for row in unclosed_rows]:
        raise transition_error(bead, "closed", "it has children that are not closed", unclosed)
