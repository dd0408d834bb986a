"""Reads and writes entries. A writer locks the row of its namespace, so that its quota is never
exceeded."""

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
_INSERT = f"""INSERT INTO entries AS e (namespace, key, value, text, metadata, bytes, created_at,
    updated_at, expires_at, vector, words)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s::vector, to_tsvector('english', %s))
    RETURNING e.id, {COLUMNS}"""


def fold_words(text: str) -> list[str]:
    """Return the words without case and accents."""
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c)
    )
    return _WORD.findall(plain)


def vector_text(vector: bytes) -> str:
    """Encode a vector for pgvector; nine digits preserve each float32."""
    return "[" + ",".join(f"{value:.9g}" for value in array("f", vector)) + "]"


async def find(db: Connection, namespace: str, key: str) -> MemoryEntry | None:
    """Return the entry unless it has expired."""
    record = await fetch_one(
        db,
        f"SELECT {COLUMNS} FROM entries e WHERE e.namespace = %s AND e.key = %s AND {LIVE}",
        (namespace, key),
    )
    return None if record is None else entry_from_row(record)


async def store(
    db: Connection, draft: EntryDraft, embedder: Embedder, quotas: Quotas, ttl_s: int | None
) -> tuple[MemoryEntry, bool]:
    """Insert or overwrite an entry. Return it and whether it is new. Raises QuotaExceeded,
    ModelMismatch.

    The model is checked after the write: a pass that rewrites all vectors waits for earlier writes
    (postgres/reembed_store.py).
    """
    entries, size, now = await _lock_namespace(db, draft.namespace)
    old = await fetch_one(
        db,
        (
            f"SELECT e.id, e.created_at, e.bytes, {LIVE} FROM entries e WHERE namespace = %s "
            f"AND key = %s"
        ),
        (draft.namespace, draft.key),
    )
    # expired entries must not count
    if entries >= quotas.entries or size + draft.bytes > quotas.bytes:
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
            (
                "INSERT INTO metadata SELECT %s, * "
                "FROM unnest(%s::text[], %s::text[], %s::float8[], %s::text[])"
            ),
            (inserted[0], *(list(column) for column in zip(*kinds, strict=True))),
        )
    model = await _add_counts(db, draft.namespace, 1, draft.bytes)
    check_model(embedder, *model)
    return entry_from_row(inserted[1:]), created


async def delete(db: Connection, namespace: str, key: str) -> bool:
    """Return whether there was a live entry."""
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
    """Return the namespaces with expired entries."""
    return [
        record[0]
        for record in await fetch_all(
            db, f"SELECT DISTINCT namespace FROM entries WHERE expires_at <= {NOW}"
        )
    ]


async def sweep(db: Connection, namespace: str) -> None:
    """Remove the expired entries of a namespace."""
    await _lock_namespace(db, namespace)
    await _remove_expired(db, namespace)
    await _remove_if_empty(db, namespace)


async def _lock_namespace(db: Connection, namespace: str) -> tuple[int, int, int]:
    """Lock the row of a namespace until the transaction ends; return its entries and bytes, and the
    server's time."""
    record = await fetch_one(
        db,
        """INSERT INTO namespaces AS n VALUES (%s, 0, 0) ON CONFLICT (name) DO UPDATE
        SET entries = n.entries
        RETURNING n.entries, n.bytes, now_ms()""",
        (namespace,),
    )
    assert record is not None
    return record[0], record[1], record[2]


async def _remove(db: Connection, namespace: str, number: int, size: int) -> None:
    await db.execute("DELETE FROM entries WHERE id = %s", (number,))
    await _add_counts(db, namespace, -1, -size)


async def _remove_expired(db: Connection, namespace: str, except_key: str = "") -> tuple[int, int]:
    """Return the number of removed entries and bytes."""
    removed = await fetch_one(
        db,
        f"""WITH gone AS (
            DELETE FROM entries WHERE namespace = %s AND expires_at <= {NOW} AND key != %s
            RETURNING bytes
        ) SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone""",
        (namespace, except_key),
    )
    assert removed is not None
    await _add_counts(db, namespace, -removed[0], -removed[1])
    return removed[0], removed[1]


async def _add_counts(db: Connection, namespace: str, entries: int, size: int) -> tuple[str, int]:
    """Update the counts; return the stored model and its dimensions."""
    sql = """UPDATE namespaces SET entries = entries + %s, bytes = bytes + %s WHERE name = %s
        RETURNING (SELECT model_id FROM model), (SELECT dims FROM model)"""
    model = await fetch_one(db, sql, (entries, size, namespace))
    return (model[0], model[1]) if model else ("", 0)


async def _remove_if_empty(db: Connection, namespace: str) -> None:
    await db.execute("DELETE FROM namespaces WHERE name = %s AND entries = 0", (namespace,))
