"""Claims. The lease id identifies the holder, time is the store's clock, and expired leases are
finalised first."""

import apsw

from agentbox.adapters.beads.sqlite.rows import (
    BLOCKED,
    CHANGED,
    bead_from_row,
    change,
    find,
    raw_beads,
    stored_lease_id,
    to_milliseconds,
)
from agentbox.contracts.beads import Bead, Claim
from agentbox.core.clock import to_wire
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import (
    AlreadyClaimed,
    InvalidTransition,
    LeaseLost,
    invalid_transition,
)
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import fetch_all, fetch_one
from agentbox.core.storage.sqlite_text import each_row

EXHAUSTED = "attempts exhausted"


def expire_leases(db: apsw.Connection, now: int) -> None:
    """Reopen beads with expired leases, and close those without attempts left as failed."""
    released = f"assignee = NULL, lease_id = NULL, lease_expires_at = NULL, {CHANGED}"
    expired = "status = 'claimed' AND lease_expires_at <= :now"
    failed = f"status = 'closed', outcome = 'failed', note = '{EXHAUSTED}', closed_at = :now"
    for sets, condition in ((failed, "attempts >= max_attempts"), ("status = 'open'", "TRUE")):
        db.execute(
            (
                f"UPDATE beads INDEXED BY beads_leases SET {sets}, {released} WHERE {expired} "
                f"AND {condition}"
            ),
            {"now": now},
        )


def shift_leases(db: apsw.Connection, delta_ms: int) -> None:
    """Shift the expiry of all leases."""
    db.execute(
        "UPDATE beads SET lease_expires_at = lease_expires_at + ? WHERE status = 'claimed'",
        (delta_ms,),
    )


def rebase_leases(db: apsw.Connection, now: int) -> None:
    """Give leases that were granted in the future their full duration from now: the clock went
    back."""
    db.execute(
        (
            "UPDATE beads SET lease_expires_at = ? + lease_expires_at - updated_at "
            "WHERE status = 'claimed' AND updated_at > ?"
        ),
        (now, now),
    )


def any_expired(db: apsw.Connection, now: int) -> bool:
    """Return whether a lease must be expired."""
    return (
        fetch_one(
            db,
            (
                "SELECT 1 FROM beads INDEXED BY beads_leases WHERE status = 'claimed' "
                "AND lease_expires_at <= ? LIMIT 1"
            ),
            (now,),
        )
        is not None
    )


def claim(
    db: apsw.Connection, now: int, bead_id: str, assignee: str, lease_id: str, lease_s: int
) -> Claim:
    """Claim the bead. A repeated claim with the same live lease id returns the same lease."""
    bead = find(db, bead_id)
    if bead.status == "claimed":
        if stored_lease_id(db, bead_id) == lease_id:
            return claim_of(bead, lease_id)
        raise already_claimed(bead)
    if bead.status == "closed" or bead.kind != "task":
        reason = "it is closed" if bead.status == "closed" else f"its kind is {bead.kind}"
        raise transition_error(bead, "claimed", reason)
    if blockers := open_blockers(db, bead_id):
        raise transition_error(bead, "claimed", "it waits for other beads", blockers)
    if bead.not_before is not None and to_milliseconds(bead.not_before) > now:
        raise transition_error(
            bead, "claimed", f"it may not start before {to_wire(bead.not_before)}"
        )
    return _grant(db, now, bead_id, assignee, lease_id, lease_s)


def claim_next(
    db: apsw.Connection,
    now: int,
    assignee: str,
    lease_id: str,
    lease_s: int,
    parent_id: str | None,
    tags: tuple[str, ...],
    damaged: DamagedRows,
) -> Claim | None:
    """Claim the first ready bead below the parent with all the tags, skipping damaged ones. A
    repeated call returns the same claim."""
    existing = next(
        raw_beads(db, "WHERE b.lease_id = ? AND b.status = 'claimed'", (lease_id,)), None
    )
    if existing is not None:
        return claim_of(bead_from_row(existing), lease_id)
    where, values = ready_condition(now, parent_id)
    for tag in tags:
        where += " AND EXISTS (SELECT 1 FROM tags t WHERE t.tag = ? AND t.bead_id = b.id)"
        values.append(tag)
    ready = f"SELECT b.id FROM beads b {where} ORDER BY b.priority, b.rank, b.id"
    for (bead_id,) in each_row(db, ready, values, ("id",), key_columns=1):
        with damaged.skip_damaged():
            return _grant(db, now, bead_id, assignee, lease_id, lease_s)
    return None


def heartbeat(db: apsw.Connection, now: int, bead_id: str, lease_id: str, lease_s: int) -> Claim:
    """Extend the lease to `lease_s` from now."""
    require_lease(db, find(db, bead_id), lease_id)
    return claim_of(change(db, bead_id, now, lease_expires_at=now + lease_s * 1000), lease_id)


def release(
    db: apsw.Connection, now: int, bead_id: str, lease_id: str, delay_s: int, note: str
) -> Bead:
    """Reopen the bead, not before now + `delay_s`."""
    bead = find(db, bead_id)
    require_lease(db, bead, lease_id)
    delay_columns = (
        {"not_before": now + delay_s * 1000, "rank": now + delay_s * 1000} if delay_s else {}
    )
    note_columns = {"note": note} if note else {}
    return change(
        db,
        bead_id,
        now,
        status="open",
        assignee=None,
        lease_id=None,
        lease_expires_at=None,
        **delay_columns,
        **note_columns,
    )


def ready_condition(now: int, parent_id: str | None) -> tuple[str, list[object]]:
    """Return index and condition of `ready`, and its values. The index provides the order without a
    sort."""
    where = (
        f"INDEXED BY beads_ready WHERE b.status = 'open' AND b.kind = 'task' "
        f"AND (b.not_before IS NULL OR b.not_before <= ?) AND NOT {BLOCKED}"
    )
    values: list[object] = [now]
    if parent_id is not None:
        where += " AND b.parent_id = ?"
        values.append(parent_id)
    return where, values


def open_blockers(db: apsw.Connection, bead_id: str) -> list[str]:
    """Return the blockers that are not closed as done."""
    blockers = fetch_all(
        db,
        "SELECT k.id FROM deps d JOIN beads k ON k.id = d.blocker_id "
        "WHERE d.bead_id = ? AND NOT (k.status = 'closed' AND k.outcome = 'done') ORDER BY k.id",
        (bead_id,),
    )
    return [blocker[0] for blocker in blockers]


def require_lease(db: apsw.Connection, bead: Bead, lease_id: str | None) -> None:
    """Raises LeaseLost unless the lease holds the bead."""
    if bead.status != "claimed" or lease_id is None or stored_lease_id(db, bead.id) != lease_id:
        raise LeaseLost(f"cannot change bead {bead.id}: this lease does not hold it", id=bead.id)


def transition_error(
    bead: Bead, to: str, reason: str, blockers: list[str] | None = None
) -> InvalidTransition:
    """Return the error for a transition that the bead's state forbids."""
    verb = {"claimed": "claim", "closed": "close"}[to]
    return invalid_transition(
        f"cannot {verb} bead {bead.id}: {reason}",
        bead.id,
        from_state=bead.status,
        to_state=to,
        blockers=blockers or (),
    )


def _grant(
    db: apsw.Connection, now: int, bead_id: str, assignee: str, lease_id: str, lease_s: int
) -> Claim:
    try:
        bead = change(
            db,
            bead_id,
            now,
            status="claimed",
            assignee=assignee,
            lease_id=lease_id,
            lease_expires_at=now + lease_s * 1000,
            attempts=find(db, bead_id).attempts + 1,
        )
    except apsw.ConstraintError:
        raise invalid_value("/lease_id", "holds another bead") from None
    return claim_of(bead, lease_id)


def claim_of(bead: Bead, lease_id: str) -> Claim:
    """Return the claim of a claimed bead."""
    assert bead.lease_expires_at is not None
    return Claim(bead=bead, lease_id=lease_id, expires_at=bead.lease_expires_at)


def already_claimed(bead: Bead) -> AlreadyClaimed:
    """Return the error for a bead that another lease holds."""
    assert bead.lease_expires_at is not None
    return AlreadyClaimed(
        f"cannot claim bead {bead.id}: {bead.assignee} holds it",
        id=bead.id,
        assignee=bead.assignee,
        lease_expires_at=to_wire(bead.lease_expires_at),
    )
