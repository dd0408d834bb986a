"""Entries in and out. Who writes in a namespace holds its row of `namespaces`, so that its quota is never overshot."""

import re
import unicodedata
from array import array

from agentbox.adapters.memory.embedder import check_model
from agentbox.adapters.memory.sqlite.rows import (
    COLUMNS,
    EntryDraft,
    Quotas,
    check_quotas,
    entry_from_row,
    scalar_columns,
)
from agentbox.contracts.memory import Embedder, MemoryEntry
from agentbox.core.storage.postgres.database import Connection, fetch_all, fetch_one

NOW = "(SELECT now_ms())"
LIVE = f"(e.expires_at IS NULL OR e.expires_at > {NOW})"
_WORD = re.compile(r"[^\W_]+")
_INSERT = f"""INSERT INTO entries AS e (namespace, key, value, text, metadata, bytes, created_at, updated_at, expires_at, vector, words)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s::vector, to_tsvector('english', %s)) RETURNING e.id, {COLUMNS}"""


def fold_words(text: str) -> list[str]:
    """Its words, without case and accents."""
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c)
    )
    return _WORD.findall(plain)


def vector_text(vector: bytes) -> str:
    """What pgvector reads; nine digits give each float32 back exactly."""
    return "[" + ",".join(f"{value:.9g}" for value in array("f", vector)) + "]"


async def find(db: Connection, namespace: str, key: str) -> MemoryEntry | None:
    """The entry, unless it has expired."""
    record = await fetch_one(
        db,
        f"SELECT {COLUMNS} FROM entries e WHERE e.namespace = %s AND e.key = %s AND {LIVE}",
        (namespace, key),
    )
    return None if record is None else entry_from_row(record)


async def store(
    db: Connection, draft: EntryDraft, embedder: Embedder, quotas: Quotas, ttl_s: int | None
) -> tuple[MemoryEntry, bool]:
    """Inserts or overwrites. The entry, and whether it is new. Raises QuotaExceeded, ModelMismatch.

    Which model the store has is asked after the entry was written: who starts to rewrite all vectors waits for what was
    written before (pg/renewal.py).
    """
    entries, size, now = await _lock_namespace(db, draft.namespace)
    old = await fetch_one(
        db,
        f"SELECT e.id, e.created_at, e.bytes, {LIVE} FROM entries e WHERE namespace = %s AND key = %s",
        (draft.namespace, draft.key),
    )
    if (
        entries >= quotas.entries or size + draft.bytes > quotas.bytes
    ):  # what has expired must not stand in the way
        removed = await _remove_expired(db, draft.namespace, except_key=draft.key)
        entries, size = entries - removed[0], size - removed[1]
    check_quotas(draft, quotas, (entries, size), old[2] if old else None)
    created = not (old and old[3])
    if old is not None:
        await _remove(db, draft.namespace, old[0], old[2])
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
        None if ttl_s is None else now + 1000 * ttl_s,
        None if draft.vector is None else vector_text(draft.vector),
        " ".join(fold_words(draft.text)),
    )
    inserted = await fetch_one(db, _INSERT, values)
    assert inserted is not None
    if draft.scalars:
        kinds = [(key, *scalar_columns(value)) for key, value in draft.scalars.items()]
        await db.execute(
            "INSERT INTO metadata SELECT %s, * FROM unnest(%s::text[], %s::text[], %s::float8[], %s::text[])",
            (inserted[0], *(list(column) for column in zip(*kinds, strict=True))),
        )
    model = await _add_counts(db, draft.namespace, 1, draft.bytes)
    check_model(embedder, *model)
    return entry_from_row(inserted[1:]), created


async def delete(db: Connection, namespace: str, key: str) -> bool:
    """Whether there was a live one."""
    await _lock_namespace(db, namespace)
    record = await fetch_one(
        db,
        f"SELECT e.id, e.bytes, {LIVE} FROM entries e WHERE namespace = %s AND key = %s",
        (namespace, key),
    )
    if record is not None:
        await _remove(db, namespace, record[0], record[1])
    await _remove_if_empty(db, namespace)
    return record is not None and bool(record[2])


async def expired_namespaces(db: Connection) -> list[str]:
    """Where something has expired."""
    return [
        record[0]
        for record in await fetch_all(
            db, f"SELECT DISTINCT namespace FROM entries WHERE expires_at <= {NOW}"
        )
    ]


async def sweep(db: Connection, namespace: str) -> None:
    """Removes what has expired in a namespace."""
    await _lock_namespace(db, namespace)
    await _remove_expired(db, namespace)
    await _remove_if_empty(db, namespace)


async def _lock_namespace(db: Connection, namespace: str) -> tuple[int, int, int]:
    """Entries and bytes of a namespace, whose row is locked to the end of the transaction, and the server's time."""
    record = await fetch_one(
        db,
        """INSERT INTO namespaces AS n VALUES (%s, 0, 0) ON CONFLICT (name) DO UPDATE SET entries = n.entries
        RETURNING n.entries, n.bytes, now_ms()""",
        (namespace,),
    )
    assert record is not None
    return record[0], record[1], record[2]


async def _remove(db: Connection, namespace: str, number: int, size: int) -> None:
    await db.execute("DELETE FROM entries WHERE id = %s", (number,))
    await _add_counts(db, namespace, -1, -size)


async def _remove_expired(db: Connection, namespace: str, except_key: str = "") -> tuple[int, int]:
    """How many, and how many bytes."""
    removed = await fetch_one(
        db,
        f"""WITH gone AS (
            DELETE FROM entries WHERE namespace = %s AND expires_at <= {NOW} AND key != %s RETURNING bytes
        ) SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone""",
        (namespace, except_key),
    )
    assert removed is not None
    await _add_counts(db, namespace, -removed[0], -removed[1])
    return removed[0], removed[1]


async def _add_counts(db: Connection, namespace: str, entries: int, size: int) -> tuple[str, int]:
    """The model of the store and its dimensions as of then."""
    sql = """UPDATE namespaces SET entries = entries + %s, bytes = bytes + %s WHERE name = %s
        RETURNING (SELECT model_id FROM model), (SELECT dims FROM model)"""
    model = await fetch_one(db, sql, (entries, size, namespace))
    return (model[0], model[1]) if model else ("", 0)


async def _remove_if_empty(db: Connection, namespace: str) -> None:
    await db.execute("DELETE FROM namespaces WHERE name = %s AND entries = 0", (namespace,))
