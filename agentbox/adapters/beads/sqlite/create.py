"""Creates beads: epics, children, and the due children of schedules."""

import json
from collections.abc import Callable
from datetime import datetime

import apsw

from agentbox.adapters.beads.schedules import Schedule
from agentbox.adapters.beads.sqlite.rows import (
    bead_from_row,
    find,
    from_milliseconds,
    raw_beads,
    to_milliseconds,
)
from agentbox.adapters.runtime.agent_quotas import (
    OPEN_BEADS,
    OPEN_BEADS_OF_AGENTS,
    is_agent,
    too_many_beads,
)
from agentbox.adapters.runtime.input_checks import json_text
from agentbox.contracts import beads
from agentbox.contracts.beads import Bead, BeadSpec, Kind
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import NotFound, invalid_transition
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import fetch_one
from agentbox.core.storage.sqlite_text import each_row

Ids = Callable[[], str]


def create(
    db: apsw.Connection, ids: Ids, now: int, spec: BeadSpec, parent_id: str | None
) -> tuple[Bead, bool]:
    """Create the bead, or return the existing one with the same `dedup_key`."""
    if (existing := _find_existing(db, spec.dedup_key)) is not None:
        return existing, False
    _check_share(db, spec.creator or "")
    depth = 1 if parent_id is None else _child_depth(db, parent_id)
    kind: Kind = "schedule" if spec.every is not None else "epic" if parent_id is None else "task"
    return _insert(db, ids(), now, spec, kind, parent_id, depth), True


def create_due(db: apsw.Connection, ids: Ids, now: int, damaged: DamagedRows) -> None:
    """Create the children of due schedules: for the latest missed time only, and none if `skip`
    forbids it."""
    names = ("id", "next_due", "depth")
    sql = (
        f"SELECT {', '.join(names)} FROM beads INDEXED BY beads_due WHERE status = 'open' "
        f"AND next_due <= ?"
    )
    for bead_id, next_due, depth in list(each_row(db, sql, (now,), names, key_columns=1)):
        with damaged.skip_damaged():
            schedule = find(db, bead_id)
            every = Schedule.parse(schedule.every or "")
            latest = every.latest_due(from_milliseconds(next_due), from_milliseconds(now))
            due_after = every.next_due(latest, from_milliseconds(now))
            db.execute(
                "UPDATE beads SET next_due = ? WHERE id = ?",
                (to_milliseconds(due_after), bead_id),
            )
            if schedule.overlap == "queue" or not _unclosed_child(db, bead_id):
                _create_child(db, ids, now, schedule, latest, depth + 1)


def any_due(db: apsw.Connection, now: int) -> bool:
    """Return whether a schedule is due."""
    return (
        fetch_one(
            db,
            (
                "SELECT 1 FROM beads INDEXED BY beads_due WHERE status = 'open' AND next_due <= ? "
                "LIMIT 1"
            ),
            (now,),
        )
        is not None
    )


def scheduled_spec(schedule: Bead, due: datetime) -> BeadSpec:
    """Return the spec of a schedule's child for a due time."""
    key = f"{schedule.id}@{due.isoformat(timespec='milliseconds').replace('+00:00', 'Z')}"
    return BeadSpec(
        title=schedule.title,
        creator=schedule.creator,
        body=schedule.body,
        priority=schedule.priority,
        tags=schedule.tags,
        data=schedule.data,
        dedup_key=key,
        not_before=due,
        max_attempts=schedule.max_attempts,
    )


def _create_child(
    db: apsw.Connection, ids: Ids, now: int, schedule: Bead, due: datetime, depth: int
) -> None:
    spec = scheduled_spec(schedule, due)
    if _find_existing(db, spec.dedup_key) is None:
        _insert(db, ids(), now, spec, "task", schedule.id, depth)


def _check_share(db: apsw.Connection, creator: str) -> None:
    """Raises QuotaExceeded if the agent, or all agents together, have too many open beads."""
    if not is_agent(creator):
        return
    agents = (
        "status != 'closed' AND creator >= 'urn:agentbox:agent:' "
        "AND creator < 'urn:agentbox:agent;'"
    )
    for where, values, cap, owner in (
        (f"{agents} AND creator = ?", (creator,), OPEN_BEADS, "this agent"),
        (agents, (), OPEN_BEADS_OF_AGENTS, "the agents"),
    ):
        counts = fetch_one(
            db, f"SELECT count(*) FROM beads INDEXED BY beads_of_agents WHERE {where}", values
        )
        assert counts is not None
        if counts[0] >= cap:
            raise too_many_beads(counts[0], cap, owner)


def _find_existing(db: apsw.Connection, dedup_key: str | None) -> Bead | None:
    if dedup_key is None:
        return None
    record = next(raw_beads(db, "WHERE b.dedup_key = ?", (dedup_key,)), None)
    return None if record is None else bead_from_row(record)


def _unclosed_child(db: apsw.Connection, bead_id: str) -> bool:
    return (
        fetch_one(
            db, "SELECT 1 FROM beads WHERE parent_id = ? AND status != 'closed' LIMIT 1", (bead_id,)
        )
        is not None
    )


def _child_depth(db: apsw.Connection, parent_id: str) -> int:
    record = fetch_one(db, "SELECT status, depth FROM beads WHERE id = ?", (parent_id,))
    if record is None:
        raise NotFound(
            f"cannot create a child of {parent_id}: no such bead",
            resource="bead",
            id=parent_id,
        )
    status, depth = record
    if status == "closed":
        raise invalid_transition(
            f"cannot create a child of {parent_id}: it is closed",
            parent_id,
            from_state="closed",
            to_state="closed",
        )
    if depth >= beads.MAX_DEPTH:
        raise invalid_value(
            "/parent_id", f"is already {depth} levels deep, the maximum is {beads.MAX_DEPTH}"
        )
    return int(depth) + 1


def _insert(
    db: apsw.Connection,
    bead_id: str,
    now: int,
    spec: BeadSpec,
    kind: Kind,
    parent_id: str | None,
    depth: int,
) -> Bead:
    not_before = None if spec.not_before is None else to_milliseconds(spec.not_before)
    next_due = (
        None if spec.every is None else first_due(Schedule.parse(spec.every), now, not_before)
    )
    columns = {
        "id": bead_id,
        "kind": kind,
        "parent_id": parent_id,
        "depth": depth,
        "title": spec.title,
        "creator": spec.creator,
        "body": spec.body,
        "priority": spec.priority,
        "tags": json.dumps(spec.tags, ensure_ascii=False),
        "data": json_text(spec.data, "/data", max_bytes=beads.MAX_DOCUMENT),
        "dedup_key": spec.dedup_key,
        "not_before": not_before,
        "every": spec.every,
        "overlap": spec.overlap,
        "max_attempts": spec.max_attempts,
        "status": "open",
        "note": "",
        "result": "null",
        "attempts": 0,
        "revision": 1,
        "created_at": now,
        "updated_at": now,
        "rank": now if not_before is None else not_before,
        "next_due": next_due,
    }
    db.execute(
        (
            f"INSERT INTO beads ({', '.join(columns)}) "
            f"VALUES ({', '.join(':' + name for name in columns)})"
        ),
        columns,
    )
    db.executemany(
        "INSERT OR IGNORE INTO tags VALUES (?, ?)", [(tag, bead_id) for tag in spec.tags]
    )
    return find(db, bead_id)


def first_due(schedule: Schedule, now: int, not_before: int | None) -> int:
    """Return the first due time: `not_before` itself may be one, otherwise it is after creation."""
    if not_before is None:
        return to_milliseconds(schedule.first_due(from_milliseconds(now)))
    if schedule.step:
        return not_before
    return to_milliseconds(schedule.first_due(from_milliseconds(not_before - 1)))
