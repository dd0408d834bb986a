"""Finding entries: near ones by HNSW, exactly where there are few or where a filter leaves the graph short; words by rank."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentbox.adapters.memory.embedder import check_model
from agentbox.adapters.memory.filters import Condition
from agentbox.adapters.memory.postgres.rows import LIVE
from agentbox.adapters.memory.postgres.words import Words
from agentbox.adapters.memory.ranking import depth, fuse, text_score
from agentbox.adapters.memory.sqlite.rows import COLUMNS, entry_of, typed
from agentbox.contracts.memory import Embedder, Hit
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.postgres.database import Connection, row, rows

EXACT = 2000  # entries of the namespaces asked, up to which each is compared: a few milliseconds at 256 dimensions
LEAST_EF = 64
_COMPARE = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
COUNTED = 2000  # entries with a word, beyond which it is common and no longer counted
# Each word of the query as a query of its own, with how rare it is: the inverse document frequency of BM25, over the
# namespaces asked. `plainto_tsquery` knows no operators, and of a stop word it makes an empty query.
_ASKED = f"""SELECT q, ln(1 + (greatest(held.n, has.n) - has.n + 0.5) / (has.n + 0.5)) AS idf
    FROM (SELECT DISTINCT plainto_tsquery('english', w) AS q FROM unnest(%s::text[]) w) x
    CROSS JOIN (SELECT coalesce(sum(entries), 0)::float8 AS n FROM namespaces WHERE name = ANY(%s)) held
    CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT FROM entries c WHERE c.namespace = ANY(%s) AND c.words @@ q LIMIT {COUNTED}) d) has
    WHERE numnode(q) > 0"""


@dataclass(frozen=True, slots=True)
class Question:
    """A search that was checked. `vector` is in pgvector's own form, None when the query has no tokens."""

    words: list[str]
    vector: str | None
    namespaces: tuple[str, ...]
    limit: int
    mode: str
    conditions: tuple[Condition, ...]
    min_cosine: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """A place in one of the two lists."""

    id: int
    key: str
    namespace: str
    value: float


async def search(
    db: Connection, embedder: Embedder, words: Words, asked: Question, damaged: DamagedRows
) -> tuple[Hit, ...]:
    """The best hits, by score and then by key, as of one snapshot, without damaged ones. Raises ModelMismatch when another model made the vectors."""
    await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    most = asked.limit if asked.mode != "hybrid" else depth(asked.limit)
    by_text = [] if asked.mode == "vector" else await _by_text(db, words, asked, most)  # first: it takes the snapshot
    by_vector = [] if asked.mode == "text" else await _by_vector(db, asked, most)
    if asked.mode == "hybrid":
        scores = fuse([one.id for one in by_vector], [one.id for one in by_text])
    elif asked.mode == "vector":
        scores = {one.id: one.value for one in by_vector}
    else:
        scores = {one.id: text_score(one.value) for one in by_text}
    names = {one.id: (one.key, one.namespace) for one in (*by_vector, *by_text)}
    best = sorted(scores, key=lambda number: (-scores[number], *names[number]))[: asked.limit]
    found = await _entries(db, embedder, asked, best)
    bm25 = {one.id: one.value for one in by_text}

    def hit(number: int) -> Hit:
        cosine, values = found[number]
        return Hit(entry=entry_of(values), score=scores[number], cosine=cosine, bm25=bm25.get(number))

    return damaged.readable([number for number in best if number in found], hit)


def conditions_sql(conditions: Sequence[Condition]) -> tuple[str, list[Any]]:
    """` AND ...` for each condition, with bound values."""
    sql, values = "", []
    for one in conditions:
        part, bound = _condition(one)
        sql += f" AND {part}"
        values += bound
    return sql, values


def _where(asked: Question) -> tuple[str, list[Any]]:
    more, bound = conditions_sql(asked.conditions)
    return f"e.namespace = ANY(%s) AND {LIVE}{more}", [list(asked.namespaces), *bound]


def _condition(one: Condition) -> tuple[str, list[Any]]:
    has = "EXISTS (SELECT 1 FROM metadata m WHERE m.entry = e.id AND m.key = %s"
    if one.op == "exists":
        return f"{'' if one.values[0] else 'NOT '}{has})", [one.key]
    if one.op in _COMPARE:
        kind, number, words = typed(one.values[0])
        column, value, cast = ("number", number, "float8") if kind == "n" else ("words", words, "text")
        return f"{has} AND m.kind = %s AND m.{column} {_COMPARE[one.op]} %s::{cast})", [one.key, kind, value]
    same = " OR ".join(
        "(m.kind = %s AND m.number IS NOT DISTINCT FROM %s::float8 AND m.words IS NOT DISTINCT FROM %s::text)"
        for _ in one.values
    )
    bound: list[Any] = [one.key]
    for value in one.values:
        bound += typed(value)
    return f"{'NOT ' if one.op == 'ne' else ''}{has} AND ({same}))", bound


async def _by_vector(db: Connection, asked: Question, most: int) -> list[Found]:
    """Best first, the value is the cosine."""
    if asked.vector is None:
        return []
    held = await row(
        db,
        """SELECT coalesce(sum(entries), 0), set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true)
        FROM namespaces WHERE name = ANY(%s)""",
        (str(min(1000, max(LEAST_EF, 2 * most))), list(asked.namespaces)),
    )
    assert held is not None
    found = [] if held[0] <= EXACT else await _nearest(db, asked, most, "")
    if len(found) < most:
        found = await _nearest(db, asked, most, " + 0")  # no index knows this expression: each entry is compared
    return [one for one in found if asked.min_cosine is None or one.value >= asked.min_cosine]


async def _nearest(db: Connection, asked: Question, most: int, plus: str) -> list[Found]:
    where, values = _where(asked)
    sql = f"""SELECT id, key, namespace, 1 - far FROM (
            SELECT e.id, e.key, e.namespace, e.vector <=> %s::vector AS far FROM entries e
            WHERE {where} AND e.vector IS NOT NULL ORDER BY (e.vector <=> %s::vector){plus} {", e.key" if plus else ""} LIMIT %s
        ) near ORDER BY far, key, namespace"""
    return [Found(*one) for one in await rows(db, sql, (asked.vector, *values, asked.vector, most))]


async def _by_text(db: Connection, words: Words, asked: Question, most: int) -> list[Found]:
    """Best first. The value takes the place of BM25: for each word PostgreSQL's cover density rank (`ts_rank_cd`)
    times how rare the word is."""
    if not asked.words:
        return []
    ranked = await words.ranked(db, asked.words, asked.namespaces)
    if ranked is None:
        return await _by_text_in_sql(db, asked, most)
    if asked.conditions:
        where, values = _where(asked)
        ranked = ranked.among(
            [number for (number,) in await rows(db, f"SELECT e.id FROM entries e WHERE {where}", values)]
        )
    found: list[Found] = []
    for wide in (most, 32 * most, len(ranked.entries)):
        found = await _named(db, asked, ranked.best(wide), most)
        if len(found) == most or wide >= len(ranked.entries):
            break
    return found


async def _named(db: Connection, asked: Question, scores: Mapping[int, float], most: int) -> list[Found]:
    """The best of those entries; the smaller key comes first among equals."""
    where, values = _least(asked)
    sql = f"SELECT e.id, e.key, e.namespace FROM entries e WHERE e.id = ANY(%s){where}"
    found = [
        Found(number, key, space, scores[number]) for number, key, space in await rows(db, sql, (list(scores), *values))
    ]
    return sorted(found, key=lambda one: (-one.value, one.key, one.namespace))[:most]


def _least(asked: Question) -> tuple[str, list[Any]]:
    if asked.min_cosine is None or asked.vector is None:
        return "", []
    return " AND 1 - (e.vector <=> %s::vector) >= %s", [asked.vector, asked.min_cosine]


async def _by_text_in_sql(db: Connection, asked: Question, most: int) -> list[Found]:
    """Much the same, entry by entry; a common word is not counted to its end."""
    where, values = _where(asked)
    spaces = list(asked.namespaces)
    also, least = _least(asked)
    sql = f"""WITH asked AS MATERIALIZED ({_ASKED}), whole AS MATERIALIZED (SELECT string_agg(q::text, ' | ')::tsquery AS q FROM asked)
        SELECT e.id, e.key, e.namespace, (SELECT sum(idf * ts_rank_cd(e.words, a.q)) FROM asked a) AS best
        FROM entries e, whole WHERE e.words @@ whole.q AND {where}{also} ORDER BY best DESC, e.key, e.namespace LIMIT %s"""
    return [Found(*one) for one in await rows(db, sql, (asked.words, spaces, spaces, *values, *least, most))]


async def _entries(
    db: Connection, embedder: Embedder, asked: Question, best: list[int]
) -> dict[int, tuple[float | None, tuple[Any, ...]]]:
    """Cosine and row of each that is still there."""
    if not best:
        return {}
    sql = f"""SELECT m.model_id, m.dims, e.id, 1 - (e.vector <=> %s::vector), {COLUMNS}
        FROM entries e, model m WHERE e.id = ANY(%s)"""
    found = await rows(db, sql, (asked.vector, best))
    for model_id, dims in {(one[0], one[1]) for one in found}:
        check_model(embedder, model_id, dims)
    return {number: (cosine, tuple(values)) for _model, _dims, number, cosine, *values in found}
