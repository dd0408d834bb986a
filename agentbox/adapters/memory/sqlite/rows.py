"""Reads and writes entries of `memory.db`. Functions run inside a transaction of the caller."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import apsw

from agentbox.adapters.memory.embedder import check_model
from agentbox.adapters.memory.filters import kind_of
from agentbox.contracts.memory import Embedder, MemoryEntry
from agentbox.core.slot_errors import QuotaExceeded
from agentbox.core.storage.damaged_rows import UNREADABLE, damaged_row
from agentbox.core.storage.invalid_utf8_keys import escape_invalid, is_sound
from agentbox.core.storage.sqlite import fetch_all, fetch_one
from agentbox.core.storage.sqlite_text import each_row

_NAMES = ("namespace", "key", "value", "text", "metadata", "created_at", "updated_at", "expires_at")
COLUMNS = ", ".join(f"e.{name}" for name in _NAMES)
LIVE = "(e.expires_at IS NULL OR e.expires_at > ?)"


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits of one namespace."""

    bytes: int
    entries: int


@dataclass(frozen=True, slots=True)
class EntryDraft:
    """An entry to store. `value` and `metadata` are JSON text; `vector` is None without tokens."""

    namespace: str
    key: str
    value: str
    text: str
    metadata: str
    scalars: Mapping[str, Any]
    vector: bytes | None
    expires_at: int | None = None

    @property
    def bytes(self) -> int:
        return sum(len(text.encode()) for text in (self.key, self.value, self.text, self.metadata))


def entry_from_row(record: tuple[Any, ...]) -> MemoryEntry:
    """Decode a row of COLUMNS. Raises IntegrityError for a damaged row."""
    try:
        return _decode_row(record)
    except UNREADABLE:
        namespace, key = (
            repr(name) if is_sound(name) else f"'{escape_invalid(name)}'" for name in record[:2]
        )
        raise damaged_row(f"entry {key} of namespace {namespace}") from None


def _decode_row(record: tuple[Any, ...]) -> MemoryEntry:
    namespace, key, value, text, metadata, created, updated, expires = record
    return MemoryEntry(
        namespace=namespace,
        key=key,
        value=json.loads(value),
        text=text,
        metadata=json.loads(metadata),
        created_at=_time(created),
        updated_at=_time(updated),
        expires_at=None if expires is None else _time(expires),
    )


def find(db: apsw.Connection, namespace: str, key: str, now: int) -> MemoryEntry | None:
    """Return the entry unless it has expired."""
    record = next(
        raw_entries(db, f"e.namespace = ? AND e.key = ? AND {LIVE}", (namespace, key, now)), None
    )
    return None if record is None else entry_from_row(record)


def raw_entries(
    db: apsw.Connection, where: str, values: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    """Yield the matching rows of entries `e`, for `entry_from_row`."""
    return each_row(
        db, f"SELECT {COLUMNS} FROM entries e WHERE {where}", values, _NAMES, key_columns=2
    )


def check_stored_model(db: apsw.Connection, embedder: Embedder) -> None:
    """Raises ModelMismatch unless this model created the vectors; another process may be rewriting
    them."""
    record = fetch_one(db, "SELECT model_id, dims FROM model")
    assert record is not None
    check_model(embedder, record[0], record[1])


def store(
    db: apsw.Connection, draft: EntryDraft, embedder: Embedder, quotas: Quotas, now: int
) -> tuple[MemoryEntry, bool]:
    """Insert or overwrite an entry. Return it and whether it is new. Raises QuotaExceeded,
    ModelMismatch."""
    check_stored_model(db, embedder)
    old = fetch_one(
        db,
        (
            f"SELECT e.id, e.created_at, e.bytes, {LIVE} FROM entries e WHERE namespace = ? "
            f"AND key = ?"
        ),
        (now, draft.namespace, draft.key),
    )
    used = fetch_one(
        db, "SELECT entries, bytes FROM namespaces WHERE name = ?", (draft.namespace,)
    ) or (0, 0)
    check_quotas(draft, quotas, (used[0], used[1]), old[2] if old else None)
    created = not (old and old[3])
    if old is not None:
        remove(db, old[0])
    created_at = now if old is None or created else old[1]
    values = (
        draft.namespace,
        draft.key,
        draft.value,
        draft.text,
        draft.metadata,
        draft.bytes,
        created_at,
        now,
        draft.expires_at,
    )
    sql = (
        "INSERT INTO entries (namespace, key, value, text, metadata, bytes, created_at, "
        "updated_at, expires_at)"
    )
    db.execute(f"{sql} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    number = db.last_insert_rowid()
    db.execute("INSERT INTO words_of (rowid, text) VALUES (?, ?)", (number, draft.text))
    if draft.vector is not None:
        db.execute("UPDATE stamps SET last = last + 1")
        db.execute(
            "INSERT INTO vectors VALUES (?, ?, (SELECT last FROM stamps))", (number, draft.vector)
        )
    for key, value in draft.scalars.items():
        db.execute(
            "INSERT INTO metadata VALUES (?, ?, ?, ?, ?)", (number, key, *scalar_columns(value))
        )
    _add_counts(db, draft.namespace, 1, draft.bytes)
    stored = find(db, draft.namespace, draft.key, now)
    assert stored is not None
    return stored, created


def remove(db: apsw.Connection, number: int) -> None:
    """Remove an entry from all tables and indexes."""
    sql = "SELECT namespace, bytes FROM entries WHERE id = ?"
    namespace, size = next(each_row(db, sql, (number,), ("namespace", "bytes"), key_columns=1))
    db.execute("DELETE FROM words_of WHERE rowid = ?", (number,))
    db.execute("DELETE FROM entries WHERE id = ?", (number,))
    if is_sound(namespace):
        _add_counts(db, namespace, -1, -size)


def delete(db: apsw.Connection, namespace: str, key: str, now: int) -> bool:
    """Return whether there was a live entry."""
    record = fetch_one(
        db,
        f"SELECT e.id, {LIVE} FROM entries e WHERE namespace = ? AND key = ?",
        (now, namespace, key),
    )
    if record is not None:
        remove(db, record[0])
    return record is not None and bool(record[1])


def sweep(db: apsw.Connection, now: int, limit: int = 1000) -> int:
    """Remove up to `limit` expired entries; return their number."""
    expired = fetch_all(db, "SELECT id FROM entries WHERE expires_at <= ? LIMIT ?", (now, limit))
    for (number,) in expired:
        remove(db, number)
    return len(expired)


def scalar_columns(value: Any) -> tuple[str, float | None, str | None]:
    """Return kind, number and words of a scalar."""
    kind = kind_of(value)
    return kind, float(value) if kind in "bn" else None, value if kind == "s" else None


def check_quotas(
    draft: EntryDraft, quotas: Quotas, used: tuple[int, int], old_bytes: int | None
) -> None:
    """Raises QuotaExceeded. `used` is entries and bytes of the namespace, including `old_bytes` of
    the overwritten entry."""
    entries, size = used[0] + (old_bytes is None), used[1] + draft.bytes - (old_bytes or 0)
    for key, observed, cap, increases in (
        ("namespace_entries", entries, quotas.entries, old_bytes is None),
        ("namespace_size", size, quotas.bytes, draft.bytes > (old_bytes or 0)),
    ):
        if increases and observed > cap:
            raise QuotaExceeded(
                (
                    f"cannot store: the namespace {draft.namespace} would have {observed}, the "
                    f"maximum is {cap}"
                ),
                hint=f"delete entries, or raise adapters.memory.{key}",
                limit=key,
                observed=observed,
                cap=cap,
                config_path=f"adapters.memory.{key}",
            )


def _add_counts(db: apsw.Connection, namespace: str, entries: int, size: int) -> None:
    sql = (
        "INSERT INTO namespaces VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
        "SET entries = entries + ?, bytes = bytes + ?"
    )
    db.execute(sql, (namespace, entries, size, entries, size))
    db.execute("DELETE FROM namespaces WHERE name = ? AND entries = 0", (namespace,))


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
