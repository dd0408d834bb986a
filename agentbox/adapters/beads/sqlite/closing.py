"""Closing a bead and its descendants."""

import apsw

from agentbox.adapters.beads.sqlite.leases import transition_error
from agentbox.adapters.beads.sqlite.rows import change, find, stored_lease_id
from agentbox.contracts.beads import Bead
from agentbox.core.slot_errors import LeaseLost
from agentbox.core.storage.invalid_utf8_keys import escape_invalid
from agentbox.core.storage.sqlite_text import each_row

_DESCENDANTS_SQL = """
    WITH RECURSIVE below (id) AS (
        SELECT id FROM beads WHERE parent_id = ? UNION SELECT c.id FROM beads c JOIN below
        ON c.parent_id = below.id
    ) SELECT b.id FROM below JOIN beads b ON b.id = below.id WHERE b.status != 'closed'
    ORDER BY b.id
"""


def close(
    db: apsw.Connection,
    now: int,
    bead_id: str,
    *,
    outcome: str,
    note: str,
    result: str,
    lease_id: str | None,
    forced: bool,
) -> Bead:
    """Close the bead. `result` is JSON text; `forced` closes a claimed bead without its lease."""
    bead = find(db, bead_id)
    current_lease = stored_lease_id(db, bead_id)
    if lease_id is not None and lease_id != current_lease:
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
        _require_children_closed(db, bead)
    if outcome == "cancelled":
        for child in list(each_row(db, _DESCENDANTS_SQL, (bead_id,), ("id",), key_columns=1)):
            _set_closed(db, now, child[0], outcome="cancelled", note=f"cancelled with {bead_id}")
    return _set_closed(db, now, bead_id, outcome=outcome, note=note, result=result)


def _set_closed(db: apsw.Connection, now: int, bead_id: str, **columns: str) -> Bead:
    return change(
        db, bead_id, now, status="closed", lease_expires_at=None, closed_at=now, **columns
    )


def _require_children_closed(db: apsw.Connection, bead: Bead) -> None:
    sql = "SELECT id FROM beads WHERE parent_id = ? AND status != 'closed' ORDER BY id LIMIT 100"
    if unclosed := [
        escape_invalid(row[0]) for row in each_row(db, sql, (bead.id,), ("id",), key_columns=1)
    ]:
        raise transition_error(bead, "closed", "it has children that are not closed", unclosed)
