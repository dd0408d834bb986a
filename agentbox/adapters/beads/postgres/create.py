"""Making beads: epics, children, and the children of schedules that are due."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from agentbox.adapters.beads.postgres.rows import ANY_DUE, ANY_OVER, BEAD, DUE, OVER, SELECT, hold
from agentbox.adapters.beads.schedules import Every
from agentbox.adapters.beads.sqlite.create import first_due, scheduled
from agentbox.adapters.beads.sqlite.rows import bead_of, moment, ms
from agentbox.adapters.runtime.checks import json_text
from agentbox.adapters.runtime.shares import OPEN_BEADS, OPEN_BEADS_OF_AGENTS, is_agent, too_many_beads
from agentbox.contracts import beads
from agentbox.contracts.beads import Bead, BeadSpec, Kind
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import NotFound, invalid_transition
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.postgres.database import Connection, row, rows

Ids = Callable[[], str]
_COLUMNS = (
    "id", "kind", "parent_id", "depth", "title", "creator", "body", "priority", "tags", "data", "dedup_key", "not_before",
    "every", "overlap", "max_attempts", "status", "note", "result", "attempts", "revision", "created_at", "updated_at",
    "rank", "next_due",
)  # fmt: skip
_INSERT = f"""INSERT INTO beads AS b ({", ".join(_COLUMNS)}) VALUES ({", ".join(["%s"] * len(_COLUMNS))})
    ON CONFLICT DO NOTHING RETURNING {BEAD}"""
_TO_CHILDREN = f"b.status <> 'closed' AND NOT ({OVER} AND b.attempts >= b.max_attempts)"
# The row of the parent is locked, so that it cannot be closed before the child is there.
_PARENT = f"""SELECT b.id, b.depth + 1 AS depth, now_ms() AS now FROM beads b
    WHERE b.id = %s AND b.depth < {beads.MAX_DEPTH} AND {_TO_CHILDREN} FOR SHARE OF b"""
_NO_PARENT = "SELECT %s::text AS id, 1 AS depth, now_ms() AS now"


@dataclass(frozen=True, slots=True)
class New:
    """A bead to be made, under an id that is its own however often it is tried."""

    bead_id: str
    spec: BeadSpec
    parent_id: str | None

    @property
    def usual(self) -> bool:
        """Whether it is neither a schedule, nor tagged, nor counted against a share."""
        return self.spec.every is None and not self.spec.tags and not is_agent(self.spec.creator or "")


async def create_usual(db: Connection, new: Sequence[New]) -> list[Bead | None]:
    """The usual beads, in one statement for each parent. None for one that cannot be made so, which `create` decides."""
    made: dict[str, Bead] = {}
    for parent_id in dict.fromkeys(one.parent_id for one in new):
        values = [_values_of(one) for one in new if one.parent_id == parent_id]
        found = await rows(db, _insert_below(parent_id, len(values)), (parent_id, *chain.from_iterable(values)))
        made |= {values[0]: bead_of(values) for values in found}
    return [made.get(one.bead_id) for one in new]


def _insert_below(parent_id: str | None, count: int) -> str:
    line = "(%s::text, %s::text, %s::text, %s::text, %s::text, %s::integer, %s::text, %s::text, %s::bigint, %s::text, %s::integer)"
    return f"""WITH p AS MATERIALIZED ({_NO_PARENT if parent_id is None else _PARENT}) INSERT INTO beads AS b (
            id, kind, title, creator, body, priority, data, dedup_key, not_before, overlap, max_attempts,
            parent_id, depth, tags, status, note, result, attempts, revision, created_at, updated_at, rank
        ) SELECT n.*, p.id, p.depth, '[]', 'open', '', 'null', 0, 1, p.now, p.now, coalesce(n.not_before, p.now)
        FROM p, (VALUES {", ".join([line] * count)}) AS n (id, kind, title, creator, body, priority, data, dedup_key, not_before)
        ON CONFLICT DO NOTHING RETURNING {BEAD}"""


def _values_of(new: New) -> tuple[object, ...]:
    spec = new.spec
    return (
        new.bead_id, "epic" if new.parent_id is None else "task", spec.title, spec.creator, spec.body, spec.priority,
        json_text(spec.data, "/data", most=beads.MAX_DOCUMENT), spec.dedup_key,
        None if spec.not_before is None else ms(spec.not_before), spec.overlap, spec.max_attempts,
    )  # fmt: skip


async def create(db: Connection, new: New) -> tuple[Bead, bool]:
    """The bead of that spec, or the one that has its `dedup_key` already."""
    bead_id, spec, parent_id = new.bead_id, new.spec, new.parent_id
    if (known := await _known(db, bead_id, spec.dedup_key)) is not None:
        return known, known.id == bead_id
    await _check_share(db, spec.creator or "")
    depth, now = await _below(db, parent_id)
    kind: Kind = "schedule" if spec.every is not None else "epic" if parent_id is None else "task"
    made = await _insert(db, bead_id, now, spec, kind, parent_id, depth)
    if made is not None:
        return made, True
    known = await _known(db, bead_id, spec.dedup_key)  # another was faster, and has committed
    assert known is not None
    return known, False


async def make_due(db: Connection, ids: Ids, damaged: DamagedRows) -> None:
    """Makes the child of every schedule that is due: of the latest missed time alone, and none that `skip` forbids.

    The rows of the schedules are locked, so that of many boxes one makes it and the others wait for it.
    """
    due = await rows(
        db,
        f"SELECT {BEAD}, b.next_due, b.depth, now_ms() FROM beads b WHERE {DUE} ORDER BY b.id FOR UPDATE OF b",
    )
    for *values, next_due, depth, now in due:
        with damaged.skipped():
            schedule = bead_of(values)
            every = Every.parse(schedule.every or "")
            latest = every.latest(moment(next_due), moment(now))
            later = ms(every.after(latest, moment(now)))
            await db.execute("UPDATE beads SET next_due = %s WHERE id = %s", (later, schedule.id))
            if schedule.overlap == "queue" or not await _unclosed_child(db, schedule.id):
                await _insert(db, ids(), now, scheduled(schedule, latest), "task", schedule.id, depth + 1)


async def any_over(db: Connection) -> tuple[bool, bool]:
    """Whether a lease is over, and whether a schedule is due."""
    found = await row(db, f"SELECT {ANY_OVER}, {ANY_DUE}")
    assert found is not None
    return found[0], found[1]


async def _check_share(db: Connection, creator: str) -> None:
    """Raises QuotaExceeded for an agent that has many open ones, or where all agents together have."""
    if not is_agent(creator):
        return
    found = await row(
        db,
        """SELECT count(*) FILTER (WHERE creator = %s), count(*) FROM beads
        WHERE status <> 'closed' AND starts_with(creator, 'urn:agentbox:agent:')""",
        (creator,),
    )
    assert found is not None
    for observed, cap, whose in zip(
        found, (OPEN_BEADS, OPEN_BEADS_OF_AGENTS), ("this agent", "the agents"), strict=True
    ):
        if observed >= cap:
            raise too_many_beads(observed, cap, whose)


async def _known(db: Connection, bead_id: str, dedup_key: str | None) -> Bead | None:
    found = await row(db, SELECT + "WHERE b.id = %s OR b.dedup_key = %s", (bead_id, dedup_key))
    if found is None:
        return None
    bead = bead_of(found)
    return (await hold(db, bead.id)).bead if bead.status == "claimed" else bead


async def _unclosed_child(db: Connection, bead_id: str) -> bool:
    found = await row(
        db,
        f"""SELECT 1 FROM beads b WHERE b.parent_id = %s AND b.status != 'closed'
        AND NOT ({OVER} AND b.attempts >= b.max_attempts) LIMIT 1""",
        (bead_id,),
    )
    return found is not None


async def _below(db: Connection, parent_id: str | None) -> tuple[int, int]:
    """The depth of a new child, and the store's time. The parent cannot be closed before the child is there."""
    if parent_id is None:
        found = await row(db, "SELECT now_ms()")
        assert found is not None
        return 1, int(found[0])
    found = await row(
        db,
        f"""SELECT b.depth, now_ms(), NOT ({_TO_CHILDREN})
        FROM beads b WHERE b.id = %s FOR SHARE OF b""",
        (parent_id,),
    )
    if found is None:
        raise NotFound(f"cannot create a child of {parent_id}: there is no such bead", resource="bead", id=parent_id)
    depth, now, closed = found
    if closed:
        raise invalid_transition(
            f"cannot create a child of {parent_id}: it is closed", parent_id, was="closed", to="closed"
        )
    if depth >= beads.MAX_DEPTH:
        raise refuse("/parent_id", f"is {depth} levels deep already, at most {beads.MAX_DEPTH} are allowed")
    return depth + 1, now


async def _insert(
    db: Connection, bead_id: str, now: int, spec: BeadSpec, kind: Kind, parent_id: str | None, depth: int
) -> Bead | None:
    """None when a bead with that `dedup_key` is there."""
    not_before = None if spec.not_before is None else ms(spec.not_before)
    next_due = None if spec.every is None else first_due(Every.parse(spec.every), now, not_before)
    data = json_text(spec.data, "/data", most=beads.MAX_DOCUMENT)
    values = (
        bead_id, kind, parent_id, depth, spec.title, spec.creator, spec.body, spec.priority,
        json.dumps(spec.tags, ensure_ascii=False), data, spec.dedup_key, not_before, spec.every, spec.overlap,
        spec.max_attempts, "open", "", "null", 0, 1, now, now, now if not_before is None else not_before, next_due,
    )  # fmt: skip
    found = await row(db, _INSERT, values)
    if found is not None and spec.tags:
        await db.execute("INSERT INTO tags SELECT DISTINCT unnest(%s::text[]), %s", (list(spec.tags), bead_id))
    return None if found is None else bead_of(found)
