"""Creates beads: epics, children, and the due children of schedules."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from agentbox.adapters.beads.postgres.rows import (
    ANY_DUE,
    ANY_EXPIRED,
    BEAD,
    DUE,
    EXPIRED,
    SELECT,
    lock_bead,
)
from agentbox.adapters.beads.schedules import Schedule
from agentbox.adapters.beads.sqlite.create import first_due, scheduled_spec
from agentbox.adapters.beads.sqlite.rows import bead_from_row, from_milliseconds, to_milliseconds
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
from agentbox.core.storage.postgres.database import Connection, fetch_all, fetch_one

Ids = Callable[[], str]
_COLUMNS = (
    "id",
    "kind",
    "parent_id",
    "depth",
    "title",
    "creator",
    "body",
    "priority",
    "tags",
    "data",
    "dedup_key",
    "not_before",
    "every",
    "overlap",
    "max_attempts",
    "status",
    "note",
    "result",
    "attempts",
    "revision",
    "created_at",
    "updated_at",
    "rank",
    "next_due",
)
_INSERT = f"""INSERT INTO beads AS b ({", ".join(_COLUMNS)})
    VALUES ({", ".join(["%s"] * len(_COLUMNS))})
    ON CONFLICT DO NOTHING RETURNING {BEAD}"""
_ACCEPTS_CHILDREN = f"b.status <> 'closed' AND NOT ({EXPIRED} AND b.attempts >= b.max_attempts)"
# The parent row is locked so that the parent cannot be closed before the child exists.
_PARENT = f"""SELECT b.id, b.depth + 1 AS depth, now_ms() AS now FROM beads b
    WHERE b.id = %s AND b.depth < {beads.MAX_DEPTH} AND {_ACCEPTS_CHILDREN} FOR SHARE OF b"""
_NO_PARENT = "SELECT %s::text AS id, 1 AS depth, now_ms() AS now"


@dataclass(frozen=True, slots=True)
class BeadDraft:
    """A bead to create. Its id is the same for each attempt."""

    bead_id: str
    spec: BeadSpec
    parent_id: str | None

    @property
    def is_simple(self) -> bool:
        """Whether it is no schedule, has no tags and does not count against a share."""
        return (
            self.spec.every is None and not self.spec.tags and not is_agent(self.spec.creator or "")
        )


async def create_simple(db: Connection, drafts: Sequence[BeadDraft]) -> list[Bead | None]:
    """Create simple beads, one statement per parent. Returns None for those left to `create`."""
    created: dict[str, Bead] = {}
    for parent_id in dict.fromkeys(draft.parent_id for draft in drafts):
        values = [_values_of(draft) for draft in drafts if draft.parent_id == parent_id]
        inserted = await fetch_all(
            db, _insert_sql(parent_id, len(values)), (parent_id, *chain.from_iterable(values))
        )
        created |= {values[0]: bead_from_row(values) for values in inserted}
    return [created.get(draft.bead_id) for draft in drafts]


def _insert_sql(parent_id: str | None, count: int) -> str:
    placeholders = (
        "(%s::text, %s::text, %s::text, %s::text, %s::text, %s::integer, %s::text, %s::text, "
        "%s::bigint, %s::text, %s::integer)"
    )
    return f"""WITH p AS MATERIALIZED ({_NO_PARENT if parent_id is None else _PARENT})
        INSERT INTO beads AS b (
            id, kind, title, creator, body, priority, data, dedup_key, not_before, overlap,
            max_attempts, parent_id, depth, tags, status, note, result, attempts, revision,
            created_at, updated_at, rank
        ) SELECT n.*, p.id, p.depth, '[]', 'open', '', 'null', 0, 1, p.now, p.now,
            coalesce(n.not_before, p.now)
        FROM p, (VALUES {", ".join([placeholders] * count)})
            AS n (id, kind, title, creator, body, priority, data, dedup_key, not_before)
        ON CONFLICT DO NOTHING RETURNING {BEAD}"""


def _values_of(draft: BeadDraft) -> tuple[object, ...]:
    spec = draft.spec
    return (
        draft.bead_id,
        "epic" if draft.parent_id is None else "task",
        spec.title,
        spec.creator,
        spec.body,
        spec.priority,
        json_text(spec.data, "/data", max_bytes=beads.MAX_DOCUMENT),
        spec.dedup_key,
        None if spec.not_before is None else to_milliseconds(spec.not_before),
        spec.overlap,
        spec.max_attempts,
    )


async def create(db: Connection, draft: BeadDraft) -> tuple[Bead, bool]:
    """Create the bead, or return the existing one with the same `dedup_key`."""
    bead_id, spec, parent_id = draft.bead_id, draft.spec, draft.parent_id
    if (existing := await _find_existing(db, bead_id, spec.dedup_key)) is not None:
        return existing, existing.id == bead_id
    await _check_share(db, spec.creator or "")
    depth, now = await _child_depth(db, parent_id)
    kind: Kind = "schedule" if spec.every is not None else "epic" if parent_id is None else "task"
    created = await _insert(db, bead_id, now, spec, kind, parent_id, depth)
    if created is not None:
        return created, True
    # a concurrent transaction committed first
    existing = await _find_existing(db, bead_id, spec.dedup_key)
    assert existing is not None
    return existing, False


async def create_due(db: Connection, ids: Ids, damaged: DamagedRows) -> None:
    """Create the children of due schedules: for the latest missed time only, and none if `skip`
    forbids it. The schedule rows are locked, so that one of several boxes creates the child."""
    due = await fetch_all(
        db,
        f"SELECT {BEAD}, b.next_due, b.depth, now_ms() FROM beads b WHERE {DUE} "
        "ORDER BY b.id FOR UPDATE OF b",
    )
    for *values, next_due, depth, now in due:
        with damaged.skip_damaged():
            schedule = bead_from_row(values)
            every = Schedule.parse(schedule.every or "")
            latest = every.latest_due(from_milliseconds(next_due), from_milliseconds(now))
            due_after = to_milliseconds(every.next_due(latest, from_milliseconds(now)))
            await db.execute(
                "UPDATE beads SET next_due = %s WHERE id = %s", (due_after, schedule.id)
            )
            if schedule.overlap == "queue" or not await _unclosed_child(db, schedule.id):
                await _insert(
                    db, ids(), now, scheduled_spec(schedule, latest), "task", schedule.id, depth + 1
                )


async def any_expired_or_due(db: Connection) -> tuple[bool, bool]:
    """Return whether a lease has expired, and whether a schedule is due."""
    flags = await fetch_one(db, f"SELECT {ANY_EXPIRED}, {ANY_DUE}")
    assert flags is not None
    return flags[0], flags[1]


async def _check_share(db: Connection, creator: str) -> None:
    """Raises QuotaExceeded if the agent, or all agents together, have too many open beads."""
    if not is_agent(creator):
        return
    counts = await fetch_one(
        db,
        """SELECT count(*) FILTER (WHERE creator = %s), count(*) FROM beads
        WHERE status <> 'closed' AND starts_with(creator, 'urn:agentbox:agent:')""",
        (creator,),
    )
    assert counts is not None
    for observed, cap, owner in zip(
        counts, (OPEN_BEADS, OPEN_BEADS_OF_AGENTS), ("this agent", "the agents"), strict=True
    ):
        if observed >= cap:
            raise too_many_beads(observed, cap, owner)


async def _find_existing(db: Connection, bead_id: str, dedup_key: str | None) -> Bead | None:
    record = await fetch_one(
        db, SELECT + "WHERE b.id = %s OR b.dedup_key = %s", (bead_id, dedup_key)
    )
    if record is None:
        return None
    bead = bead_from_row(record)
    return (await lock_bead(db, bead.id)).bead if bead.status == "claimed" else bead


async def _unclosed_child(db: Connection, bead_id: str) -> bool:
    record = await fetch_one(
        db,
        f"""SELECT 1 FROM beads b WHERE b.parent_id = %s AND b.status != 'closed'
        AND NOT ({EXPIRED} AND b.attempts >= b.max_attempts) LIMIT 1""",
        (bead_id,),
    )
    return record is not None


async def _child_depth(db: Connection, parent_id: str | None) -> tuple[int, int]:
    """Return the depth of a new child and the server's time. Locks the parent against closing."""
    if parent_id is None:
        record = await fetch_one(db, "SELECT now_ms()")
        assert record is not None
        return 1, int(record[0])
    record = await fetch_one(
        db,
        f"""SELECT b.depth, now_ms(), NOT ({_ACCEPTS_CHILDREN})
        FROM beads b WHERE b.id = %s FOR SHARE OF b""",
        (parent_id,),
    )
    if record is None:
        raise NotFound(
            f"cannot create a child of {parent_id}: no such bead",
            resource="bead",
            id=parent_id,
        )
    depth, now, closed = record
    if closed:
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
    return depth + 1, now


async def _insert(
    db: Connection,
    bead_id: str,
    now: int,
    spec: BeadSpec,
    kind: Kind,
    parent_id: str | None,
    depth: int,
) -> Bead | None:
    """Return None if a bead with this `dedup_key` exists."""
    not_before = None if spec.not_before is None else to_milliseconds(spec.not_before)
    next_due = (
        None if spec.every is None else first_due(Schedule.parse(spec.every), now, not_before)
    )
    data = json_text(spec.data, "/data", max_bytes=beads.MAX_DOCUMENT)
    values = (
        bead_id,
        kind,
        parent_id,
        depth,
        spec.title,
        spec.creator,
        spec.body,
        spec.priority,
        json.dumps(spec.tags, ensure_ascii=False),
        data,
        spec.dedup_key,
        not_before,
        spec.every,
        spec.overlap,
        spec.max_attempts,
        "open",
        "",
        "null",
        0,
        1,
        now,
        now,
        now if not_before is None else not_before,
        next_due,
    )
    record = await fetch_one(db, _INSERT, values)
    if record is not None and spec.tags:
        await db.execute(
            "INSERT INTO tags SELECT DISTINCT unnest(%s::text[]), %s", (list(spec.tags), bead_id)
        )
    return None if record is None else bead_from_row(record)
