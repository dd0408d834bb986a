"""Rows of `beads.db` as records, and shared statements."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw

from agentbox.contracts.beads import Bead
from agentbox.core.slot_errors import NotFound
from agentbox.core.storage.damaged_rows import UNREADABLE, damaged_row
from agentbox.core.storage.invalid_utf8_keys import is_sound
from agentbox.core.storage.sqlite import fetch_one
from agentbox.core.storage.sqlite_text import each_row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = (
    "id",
    "kind",
    "parent_id",
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
    "assignee",
    "lease_expires_at",
    "outcome",
    "note",
    "result",
    "attempts",
    "revision",
    "created_at",
    "updated_at",
    "closed_at",
)
_TIMES = ("not_before", "lease_expires_at", "created_at", "updated_at", "closed_at")
SELECT = (
    f"SELECT {', '.join('b.' + name for name in COLUMNS)}, "
    "(SELECT json_group_array(blocker_id ORDER BY blocker_id) FROM deps WHERE bead_id = b.id) "
    "FROM beads b "
)
CHANGED = "revision = revision + 1, updated_at = max(updated_at, :now)"
# A bead is blocked while one of its blockers is not closed as done.
BLOCKED = (
    "EXISTS (SELECT 1 FROM deps d JOIN beads k ON k.id = d.blocker_id "
    "WHERE d.bead_id = b.id AND NOT (k.status = 'closed' AND k.outcome = 'done'))"
)


def to_milliseconds(moment: datetime) -> int:
    """Return milliseconds since 1970."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_milliseconds(milliseconds: int) -> datetime:
    """The inverse of `to_milliseconds`."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def bead_from_row(record: Sequence[Any]) -> Bead:
    """Decode a row of `SELECT`. Raises IntegrityError for a damaged row."""
    try:
        return _decode_row(record)
    except UNREADABLE:
        raise damaged_row(f"bead {record[0]}") from None


def _decode_row(record: Sequence[Any]) -> Bead:
    values = dict(zip(COLUMNS, record, strict=False))
    for name in _TIMES:
        if values[name] is not None:
            values[name] = from_milliseconds(values[name])
    values["tags"] = _tuple_of(values["tags"])
    values["data"] = {} if values["data"] == "{}" else json.loads(values["data"])
    values["result"] = None if values["result"] == "null" else json.loads(values["result"])
    return Bead(**values, blocked_by=_tuple_of(record[-1]))


def _tuple_of(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))


def find(db: apsw.Connection, bead_id: str) -> Bead:
    """Return the bead. Raises NotFound."""
    record = next(raw_beads(db, "WHERE b.id = ?", (_checked_id(bead_id),)), None)
    if record is None:
        raise NotFound(f"cannot find bead {bead_id}", resource="bead", id=bead_id)
    return bead_from_row(record)


def _checked_id(bead_id: str) -> str:
    """Return the id. Raises IntegrityError for a stored id that is not valid UTF-8."""
    if not is_sound(bead_id):
        raise damaged_row(f"bead {bead_id}")
    return bead_id


def raw_beads(db: apsw.Connection, where: str, values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, for `bead_from_row`, of a query that continues after `FROM beads b`."""
    return each_row(db, SELECT + where, tuple(values), COLUMNS, key_columns=1)


def ready_sort_key(record: Sequence[Any]) -> tuple[int, int, str]:
    """Return the sort key of a row among the ready ones."""
    values = dict(zip(COLUMNS, record, strict=False))
    return values["priority"], values["not_before"] or values["created_at"], values["id"]


def change(db: apsw.Connection, bead_id: str, now: int, **columns: Any) -> Bead:
    """Set columns, increment the revision and return the bead. `updated_at` never decreases."""
    sets = "".join(f", {name} = :{name}" for name in columns)
    db.execute(
        f"UPDATE beads SET {CHANGED}{sets} WHERE id = :id",
        {**columns, "now": now, "id": _checked_id(bead_id)},
    )
    return find(db, bead_id)


def stored_lease_id(db: apsw.Connection, bead_id: str) -> str | None:
    """Return the stored lease id. It never leaves this package."""
    record = fetch_one(db, "SELECT lease_id FROM beads WHERE id = ?", (bead_id,))
    return None if record is None else record[0]
