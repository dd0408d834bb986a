"""Searches entries: by vector with HNSW, exactly for few entries or restrictive filters, and by
words with ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentbox.adapters.memory.embedder import check_model
from agentbox.adapters.memory.filters import FilterCondition
from agentbox.adapters.memory.postgres.rows import LIVE
from agentbox.adapters.memory.postgres.word_index import PgWordIndex
from agentbox.adapters.memory.rank_fusion import fuse, fusion_depth, text_score
from agentbox.adapters.memory.sql_conditions import join_conditions
from agentbox.adapters.memory.sqlite.rows import COLUMNS, entry_from_row, scalar_columns
from agentbox.contracts.memory import Embedder, Hit
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.postgres.database import Connection, fetch_all, fetch_one

MAX_EXACT = 2000  # entries up to which all are compared: a few milliseconds at 256 dimensions
MIN_EF_SEARCH = 64
_COMPARE = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
MAX_COUNTED = 2000  # entries of a word up to which they are counted
# Each word of the query as a separate tsquery with its inverse document frequency as in BM25, over
# the requested namespaces. `plainto_tsquery` has no operators; a stop word gives an empty query.
_QUERY_WORDS_SQL = f"""SELECT q,
        ln(1 + (greatest(held.n, has.n) - has.n + 0.5) / (has.n + 0.5)) AS idf
    FROM (SELECT DISTINCT plainto_tsquery('english', w) AS q FROM unnest(%s::text[]) w) x
    CROSS JOIN (SELECT coalesce(sum(entries), 0)::float8 AS n FROM namespaces
        WHERE name = ANY(%s)) held
    CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT FROM entries c
        WHERE c.namespace = ANY(%s) AND c.words @@ q LIMIT {MAX_COUNTED}) d) has
    WHERE numnode(q) > 0"""


@dataclass(frozen=True, slots=True)
class PgSearchQuery:
    """A checked search. `vector` is in pgvector's text form, None if the query has no tokens."""

    words: list[str]
    vector: str | None
    namespaces: tuple[str, ...]
    limit: int
    mode: str
    conditions: tuple[FilterCondition, ...]
    min_cosine: float | None


@dataclass(frozen=True, slots=True)
class RankedHit:
    """An entry in one of the two lists."""

    id: int
    key: str
    namespace: str
    value: float


async def search(
    db: Connection,
    embedder: Embedder,
    word_index: PgWordIndex,
    query: PgSearchQuery,
    damaged: DamagedRows,
) -> tuple[Hit, ...]:
    """Return the best hits by score, then key, from one snapshot and without damaged ones. Raises
    ModelMismatch if another model created the vectors."""
    await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    count = query.limit if query.mode != "hybrid" else fusion_depth(query.limit)
    # first, because it takes the snapshot
    by_text = [] if query.mode == "vector" else await _by_text(db, word_index, query, count)
    by_vector = [] if query.mode == "text" else await _by_vector(db, query, count)
    if query.mode == "hybrid":
        scores = fuse([match.id for match in by_vector], [match.id for match in by_text])
    elif query.mode == "vector":
        scores = {match.id: match.value for match in by_vector}
    else:
        scores = {match.id: text_score(match.value) for match in by_text}
    names = {match.id: (match.key, match.namespace) for match in (*by_vector, *by_text)}
    best = sorted(scores, key=lambda number: (-scores[number], *names[number]))[: query.limit]
    entries = await _entries(db, embedder, query, best)
    bm25 = {match.id: match.value for match in by_text}

    def hit(number: int) -> Hit:
        cosine, values = entries[number]
        return Hit(
            entry=entry_from_row(values), score=scores[number], cosine=cosine, bm25=bm25.get(number)
        )

    return damaged.readable_rows([number for number in best if number in entries], hit)


def conditions_sql(conditions: Sequence[FilterCondition]) -> tuple[str, list[Any]]:
    """Return ` AND ...` for each condition, with bound values."""
    return join_conditions(map(_condition_sql, conditions))


def _where(query: PgSearchQuery) -> tuple[str, list[Any]]:
    more, bound = conditions_sql(query.conditions)
    return f"e.namespace = ANY(%s) AND {LIVE}{more}", [list(query.namespaces), *bound]


def _condition_sql(condition: FilterCondition) -> tuple[str, list[Any]]:
    has = "EXISTS (SELECT 1 FROM metadata m WHERE m.entry = e.id AND m.key = %s"
    if condition.op == "exists":
        return f"{'' if condition.values[0] else 'NOT '}{has})", [condition.key]
    if condition.op in _COMPARE:
        kind, number, words = scalar_columns(condition.values[0])
        column, value, cast = (
            ("number", number, "float8") if kind == "n" else ("words", words, "text")
        )
        return f"{has} AND m.kind = %s AND m.{column} {_COMPARE[condition.op]} %s::{cast})", [
            condition.key,
            kind,
            value,
        ]
    equals = " OR ".join(
        (
            "(m.kind = %s AND m.number IS NOT DISTINCT FROM %s::float8 "
            "AND m.words IS NOT DISTINCT FROM %s::text)"
        )
        for _ in condition.values
    )
    bound: list[Any] = [condition.key]
    for value in condition.values:
        bound += scalar_columns(value)
    return f"{'NOT ' if condition.op == 'ne' else ''}{has} AND ({equals}))", bound


async def _by_vector(db: Connection, query: PgSearchQuery, count: int) -> list[RankedHit]:
    """Return the best hits; the value is the cosine."""
    if query.vector is None:
        return []
    entry_counts = await fetch_one(
        db,
        """SELECT coalesce(sum(entries), 0), set_config('hnsw.ef_search', %s, true),
        set_config('hnsw.iterative_scan', 'strict_order', true)
        FROM namespaces WHERE name = ANY(%s)""",
        (str(min(1000, max(MIN_EF_SEARCH, 2 * count))), list(query.namespaces)),
    )
    assert entry_counts is not None
    matches = [] if entry_counts[0] <= MAX_EXACT else await _nearest(db, query, count, "")
    if len(matches) < count:
        # no index matches this expression, so each entry is compared
        matches = await _nearest(db, query, count, " + 0")
    return [
        match for match in matches if query.min_cosine is None or match.value >= query.min_cosine
    ]


async def _nearest(
    db: Connection, query: PgSearchQuery, count: int, order_suffix: str
) -> list[RankedHit]:
    where, values = _where(query)
    sql = f"""SELECT id, key, namespace, 1 - far FROM (
            SELECT e.id, e.key, e.namespace, e.vector <=> %s::vector AS far FROM entries e
            WHERE {where} AND e.vector IS NOT NULL
            ORDER BY (e.vector <=> %s::vector){order_suffix} {", e.key" if order_suffix else ""}
            LIMIT %s
        ) near ORDER BY far, key, namespace"""
    return [
        RankedHit(*record)
        for record in await fetch_all(db, sql, (query.vector, *values, query.vector, count))
    ]


async def _by_text(
    db: Connection, word_index: PgWordIndex, query: PgSearchQuery, count: int
) -> list[RankedHit]:
    """Return the best hits. The value replaces BM25: for each word PostgreSQL's cover density rank
    (`ts_rank_cd`) times its inverse frequency."""
    if not query.words:
        return []
    ranked = await word_index.rank(db, query.words, query.namespaces)
    if ranked is None:
        return await _by_text_in_sql(db, query, count)
    if query.conditions:
        where, values = _where(query)
        ranked = ranked.restricted_to(
            [
                number
                for (number,) in await fetch_all(
                    db, f"SELECT e.id FROM entries e WHERE {where}", values
                )
            ]
        )
    matches: list[RankedHit] = []
    for width in (count, 32 * count, len(ranked.entries)):
        matches = await _best_entries(db, query, ranked.best(width), count)
        if len(matches) == count or width >= len(ranked.entries):
            break
    return matches


async def _best_entries(
    db: Connection, query: PgSearchQuery, scores: Mapping[int, float], count: int
) -> list[RankedHit]:
    """Return the best of the entries; ties are sorted by key."""
    where, values = _min_cosine_sql(query)
    sql = f"SELECT e.id, e.key, e.namespace FROM entries e WHERE e.id = ANY(%s){where}"
    matches = [
        RankedHit(number, key, space, scores[number])
        for number, key, space in await fetch_all(db, sql, (list(scores), *values))
    ]
    return sorted(matches, key=lambda hit: (-hit.value, hit.key, hit.namespace))[:count]


def _min_cosine_sql(query: PgSearchQuery) -> tuple[str, list[Any]]:
    if query.min_cosine is None or query.vector is None:
        return "", []
    return " AND 1 - (e.vector <=> %s::vector) >= %s", [query.vector, query.min_cosine]


async def _by_text_in_sql(db: Connection, query: PgSearchQuery, count: int) -> list[RankedHit]:
    """Like `_by_text`, entry by entry; frequent words are not counted completely."""
    where, values = _where(query)
    spaces = list(query.namespaces)
    cosine_sql, cosine_values = _min_cosine_sql(query)
    sql = f"""WITH asked AS MATERIALIZED ({_QUERY_WORDS_SQL}),
            whole AS MATERIALIZED (SELECT string_agg(q::text, ' | ')::tsquery AS q FROM asked)
        SELECT e.id, e.key, e.namespace,
            (SELECT sum(idf * ts_rank_cd(e.words, a.q)) FROM asked a) AS best
        FROM entries e, whole WHERE e.words @@ whole.q AND {where}{cosine_sql}
        ORDER BY best DESC, e.key, e.namespace LIMIT %s"""
    return [
        RankedHit(*record)
        for record in await fetch_all(
            db, sql, (query.words, spaces, spaces, *values, *cosine_values, count)
        )
    ]


async def _entries(
    db: Connection, embedder: Embedder, query: PgSearchQuery, best: list[int]
) -> dict[int, tuple[float | None, tuple[Any, ...]]]:
    """Return cosine and row of each entry that still exists."""
    if not best:
        return {}
    sql = f"""SELECT m.model_id, m.dims, e.id, 1 - (e.vector <=> %s::vector), {COLUMNS}
        FROM entries e, model m WHERE e.id = ANY(%s)"""
    records = await fetch_all(db, sql, (query.vector, best))
    for model_id, dims in {(record[0], record[1]) for record in records}:
        check_model(embedder, model_id, dims)
    return {number: (cosine, tuple(values)) for _model, _dims, number, cosine, *values in records}
