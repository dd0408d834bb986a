"""`index.db`: the metadata of each object, the totals, and the changes in progress."""

import os
from dataclasses import dataclass, replace
from typing import Any, Literal

import apsw

from agentbox.adapters.pods.local.bodies import etag_of
from agentbox.adapters.runtime.agent_quotas import AGENTS_SHARE, STATE_SHARE
from agentbox.core.slot_errors import QuotaExceeded
from agentbox.core.storage.damaged_rows import DamagedRows, damaged_row
from agentbox.core.storage.invalid_utf8_keys import is_sound
from agentbox.core.storage.sqlite import fetch_one
from agentbox.core.storage.sqlite_text import each_row

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE objects (
        path TEXT PRIMARY KEY, content_type TEXT NOT NULL, etag TEXT NOT NULL, size INTEGER NOT NULL,
        inode INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE intents (
        id TEXT PRIMARY KEY, instance INTEGER NOT NULL, path TEXT NOT NULL, op TEXT NOT NULL, temp TEXT NOT NULL,
        content_type TEXT NOT NULL, etag TEXT NOT NULL, bytes INTEGER NOT NULL, objects INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX intents_path ON intents (path);
    CREATE TABLE totals (id INTEGER PRIMARY KEY CHECK (id = 0), bytes INTEGER NOT NULL, objects INTEGER NOT NULL) STRICT;
    INSERT INTO totals VALUES (0, 0, 0);
    CREATE TABLE pulse (id INTEGER PRIMARY KEY CHECK (id = 0), at INTEGER NOT NULL) STRICT;
    """,
    """
    CREATE TABLE shares (share TEXT PRIMARY KEY, bytes INTEGER NOT NULL, objects INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO shares
        SELECT substr(path, 1, 6 + instr(substr(path, 7), '/')), sum(size), count(*) FROM objects
        WHERE path LIKE 'state/_%/%' GROUP BY 1;
    """,
)
_OBJECT = ("path", "content_type", "etag", "size", "inode", "mtime_ns", "ctime_ns")
_INTENT = ("id", "instance", "path", "op", "temp", "content_type", "etag", "bytes", "objects")
AGENTS_CONTAINER = "state/"  # each agent state has a container below it
DEFAULT_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """An indexed object; valid for a file while `matches` is True."""

    path: str
    content_type: str
    etag: str
    size: int
    inode: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def from_stat(
        cls, path: str, content_type: str, etag: str, status: os.stat_result
    ) -> "ObjectRow":
        return cls(
            path,
            content_type,
            etag,
            status.st_size,
            status.st_ino,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )

    def matches(self, status: os.stat_result) -> bool:
        """Return whether the file is unchanged since it was indexed."""
        current = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return (self.inode, self.size, self.mtime_ns, self.ctime_ns) == current


@dataclass(frozen=True, slots=True)
class Intent:
    """A change in progress. `added_bytes` and `added_objects` are its effect on the totals; `temp`
    is the file with the new body."""

    id: str
    instance: int
    path: str
    op: Literal["write", "delete"]
    temp: str = ""
    content_type: str = ""
    etag: str = ""
    added_bytes: int = 0
    added_objects: int = 0

    def with_body(self, digest: bytes, size: int, current: ObjectRow | None) -> "Intent":
        """Return the intent completed with the body (SHA-256 and size) and the replaced object."""
        etag, added = etag_of(digest, self.content_type), size - (current.size if current else 0)
        return replace(self, etag=etag, added_bytes=added, added_objects=0 if current else 1)


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of the whole store."""

    bytes: int
    objects: int


def find(db: apsw.Connection, path: str) -> ObjectRow | None:
    """Raises IntegrityError if the row is damaged."""
    record = next(
        each_row(db, "SELECT * FROM objects WHERE path = ?", (path,), _OBJECT, key_columns=1), None
    )
    if record is not None and None in record:
        raise damaged_row(f"object {path}")
    return None if record is None else ObjectRow(*record)


def put(db: apsw.Connection, new: ObjectRow) -> None:
    """Insert or replace, and update the totals."""
    old = find(db, new.path)
    db.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)", _values(new))
    _add_totals(db, new.path, new.size - (old.size if old else 0), 0 if old else 1)


def remove(db: apsw.Connection, path: str) -> None:
    """Remove an object from the index, if present."""
    old = find(db, path)
    if old is not None:
        db.execute("DELETE FROM objects WHERE path = ?", (path,))
        _add_totals(db, path, -old.size, -1)


def begin_intent(db: apsw.Connection, intent: Intent, quota: Quota) -> None:
    """Record a change before it is made. Raises QuotaExceeded if the store with all changes in
    progress would exceed a quota."""
    _check_quota(db, "quota", "bytes", intent.added_bytes, intent.id, quota.bytes)
    _check_quota(db, "quota_objects", "objects", intent.added_objects, intent.id, quota.objects)
    if share := share_of(intent.path):
        _check_share(db, "quota", "bytes", intent, share, intent.added_bytes, quota.bytes)
        _check_share(
            db, "quota_objects", "objects", intent, share, intent.added_objects, quota.objects
        )
    values = (
        intent.id,
        intent.instance,
        intent.path,
        intent.op,
        intent.temp,
        intent.content_type,
        intent.etag,
    )
    db.execute(
        "INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*values, intent.added_bytes, intent.added_objects),
    )


def count_objects(db: apsw.Connection) -> int:
    """Return the number of indexed objects."""
    return int((fetch_one(db, "SELECT objects FROM totals") or (0,))[0])


def clear(db: apsw.Connection) -> None:
    """Remove all objects from the index."""
    db.execute("DELETE FROM objects; UPDATE totals SET bytes = 0, objects = 0")


def end_intent(db: apsw.Connection, intent_id: str) -> None:
    db.execute("DELETE FROM intents WHERE id = ?", (intent_id,))


def list_intents(
    db: apsw.Connection, damaged: DamagedRows, path: str | None = None
) -> tuple[Intent, ...]:
    """Return all intents, or those of one path. Damaged ones stay in progress."""
    where, values = ("", ()) if path is None else (" WHERE path = ?", (path,))
    return damaged.readable_rows(
        each_row(db, f"SELECT * FROM intents{where}", values, _INTENT, key_columns=1),
        _decode_intent,
    )


def note_damaged(db: apsw.Connection, damaged: DamagedRows) -> None:
    """Report objects whose path is not valid UTF-8: calls never reach them, and their files are
    treated as new."""
    damaged.readable_rows(
        each_row(db, "SELECT path FROM objects", (), ("path",), key_columns=1), _check_path
    )


def _check_path(record: tuple[Any, ...]) -> None:
    if not is_sound(record[0]):
        raise damaged_row(f"object {record[0]}")


def _check_quota(
    db: apsw.Connection, key: str, column: str, added: int, intent_id: str, cap: int
) -> None:
    if added <= 0:
        return
    sql = (
        f"SELECT {column} + (SELECT coalesce(sum(max({column}, 0)), 0) FROM intents "
        f"WHERE id != ?) FROM totals"
    )
    totals = fetch_one(db, sql, (intent_id,))
    assert totals is not None
    if totals[0] + added > cap:
        raise QuotaExceeded(
            f"cannot write: the pods would have {totals[0] + added} {column}, the maximum is {cap}",
            hint=f"delete objects, or raise adapters.pods.{key}",
            limit=key,
            observed=totals[0] + added,
            cap=cap,
            config_path=f"adapters.pods.{key}",
        )


def share_of(path: str) -> str:
    """Return the state container of a path; "" for a path outside the agents' container."""
    name, slash, _ = path.removeprefix(AGENTS_CONTAINER).partition("/")
    return (
        f"{AGENTS_CONTAINER}{name}/" if path.startswith(AGENTS_CONTAINER) and name and slash else ""
    )


def _check_share(
    db: apsw.Connection,
    key: str,
    column: str,
    intent: Intent,
    share: str,
    added: int,
    capacity: int,
) -> None:
    """Check the share of one state and of all agents; the rest is reserved for the box and its
    operator. Raises QuotaExceeded."""
    if added <= 0:
        return
    under_way = (
        f"(SELECT coalesce(sum(max({column}, 0)), 0) FROM intents WHERE id != ?2 "
        f"AND substr(path, 1, length(?1)) = ?1)"
    )
    sql = (
        f"SELECT coalesce(sum({column}), 0) + {under_way} FROM shares "
        f"WHERE substr(share, 1, length(?1)) = ?1"
    )
    for prefix, fraction in ((share, STATE_SHARE), (AGENTS_CONTAINER, AGENTS_SHARE)):
        totals, cap = fetch_one(db, sql, (prefix, intent.id)), int(capacity * fraction)
        assert totals is not None
        if totals[0] + added > cap:
            owner = prefix if prefix == share else "all agents together"
            raise QuotaExceeded(
                (
                    f"cannot write: {owner} would have {totals[0] + added} {column}, the maximum "
                    f"is {cap}"
                ),
                hint=f"delete objects there, or raise adapters.pods.{key}",
                limit=key,
                observed=totals[0] + added,
                cap=cap,
                config_path=f"adapters.pods.{key}",
            )


def _add_totals(db: apsw.Connection, path: str, size: int, objects: int) -> None:
    db.execute("UPDATE totals SET bytes = bytes + ?, objects = objects + ?", (size, objects))
    if share := share_of(path):
        db.execute(
            "INSERT INTO shares VALUES (?1, ?2, ?3) "
            "ON CONFLICT (share) DO UPDATE SET bytes = bytes + ?2, objects = objects + ?3",
            (share, size, objects),
        )
        db.execute("DELETE FROM shares WHERE share = ? AND objects = 0", (share,))


def _decode_intent(record: tuple[Any, ...]) -> Intent:
    if None in record:
        raise damaged_row(f"intent {record[0]}")
    return Intent(*record)


def _values(row: ObjectRow) -> tuple[object, ...]:
    return (row.path, row.content_type, row.etag, row.size, row.inode, row.mtime_ns, row.ctime_ns)
