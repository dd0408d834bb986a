"""Searches entries in `memory.db`: exactly by vector, by words, or both."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apsw

from agentbox.adapters.memory import relevance
from agentbox.adapters.memory.filters import FilterCondition
from agentbox.adapters.memory.rank_fusion import (
    MAX_WEIGHTED_WORDS,
    fuse,
    fusion_depth,
    inverse_frequency,
    text_score,
)
from agentbox.adapters.memory.sql_conditions import join_conditions
from agentbox.adapters.memory.sqlite.rows import LIVE, entry_from_row, raw_entries, scalar_columns
from agentbox.adapters.memory.sqlite.vector_index import VectorIndex
from agentbox.adapters.memory.sqlite.word_index import SqliteWordIndex, namespace_totals
from agentbox.contracts.memory import Hit
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import fetch_all, fetch_one
from agentbox.core.storage.sqlite_text import each_row

_WORD = re.compile(r"\w+")
_COMPARE = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A checked search. `vector` is None if the query has no tokens or only words are searched."""

    words: tuple[str, ...]
    vector: bytes | None
    namespaces: tuple[str, ...]
    limit: int
    mode: str
    conditions: tuple[FilterCondition, ...]
    min_cosine: float | None
    now: int


@dataclass(frozen=True, slots=True)
class _RankedHit:
    """An entry in one of the two lists."""

    id: int
    key: str
    namespace: str
    value: float


def quote_words(query: str) -> tuple[str, ...]:
    """Return each word as a quoted FTS5 query, so that it contains no operators (M11)."""
    return tuple(f'"{word}"' for word in dict.fromkeys(_WORD.findall(query)))


def search(
    db: apsw.Connection,
    vector_index: VectorIndex,
    word_index: SqliteWordIndex,
    query: SearchQuery,
    damaged: DamagedRows,
) -> tuple[Hit, ...]:
    """Return the best hits by score, then key, without damaged ones."""
    count = query.limit if query.mode != "hybrid" else fusion_depth(query.limit)
    by_vector = [] if query.mode == "text" else _by_vector(db, vector_index, query, count)
    by_text = [] if query.mode == "vector" else _by_text(db, word_index, query, count)
    if query.mode == "hybrid":
        scores = fuse([match.id for match in by_vector], [match.id for match in by_text])
    elif query.mode == "vector":
        scores = {match.id: match.value for match in by_vector}
    else:
        scores = {match.id: text_score(match.value) for match in by_text}
    names = {match.id: (match.key, match.namespace) for match in (*by_vector, *by_text)}
    best = sorted(scores, key=lambda number: (-scores[number], *names[number]))[: query.limit]
    bm25 = {match.id: match.value for match in by_text}
    return damaged.readable_rows(
        best, lambda number: _hit(db, number, scores[number], query.vector, bm25.get(number))
    )


def where_of(query: SearchQuery) -> tuple[str, list[Any]]:
    """Return the condition on `entries e` that every hit satisfies, with bound values."""
    marks = ", ".join("?" for _ in query.namespaces)
    sql, values = f"e.namespace IN ({marks}) AND {LIVE}", [*query.namespaces, query.now]
    more, bound = conditions_sql(query.conditions)
    return sql + more, values + bound


def conditions_sql(conditions: Sequence[FilterCondition]) -> tuple[str, list[Any]]:
    """Return ` AND ...` for each condition, with bound values."""
    return join_conditions(map(_condition_sql, conditions))


def _condition_sql(condition: FilterCondition) -> tuple[str, list[Any]]:
    has = "IN (SELECT m.entry FROM metadata m WHERE m.key = ?"
    if condition.op == "exists":
        return f"e.id {'' if condition.values[0] else 'NOT '}{has})", [condition.key]
    if condition.op in _COMPARE:
        kind, number, words = scalar_columns(condition.values[0])
        column, value = ("number", number) if kind == "n" else ("words", words)
        return f"e.id {has} AND m.kind = ? AND m.{column} {_COMPARE[condition.op]} ?)", [
            condition.key,
            kind,
            value,
        ]
    equals = " OR ".join(
        "(m.kind = ? AND m.number IS ? AND m.words IS ?)" for _ in condition.values
    )
    bound: list[Any] = [condition.key]
    for value in condition.values:
        bound += scalar_columns(value)
    return f"e.id {'NOT ' if condition.op == 'ne' else ''}{has} AND ({equals}))", bound


def _by_vector(
    db: apsw.Connection, vector_index: VectorIndex, query: SearchQuery, count: int
) -> list[_RankedHit]:
    """Return the best hits; the value is the cosine. Each vector that passes the filter is compared
    or known to be farther."""
    if query.vector is None:
        return []
    for width in (count, 4 * count, 32 * count):
        candidates = vector_index.candidates(db, query.vector, query.namespaces, width)
        if candidates is None:
            break
        matches = _measure(db, query, count, candidates.entries)
        threshold = matches[-1].value if len(matches) == count else query.min_cosine
        if candidates.upper_bound < -1 or (
            threshold is not None and threshold > candidates.upper_bound
        ):
            return matches
    return _measure(db, query, count, None)


def _measure(
    db: apsw.Connection, query: SearchQuery, count: int, candidates: list[int] | None
) -> list[_RankedHit]:
    """Return the nearest of the candidates, or of all entries, measured by sqlite-vec."""
    where, values = where_of(query)
    join, candidate_values = "", []
    if candidates is not None:  # CROSS JOIN: else SQLite scans the whole namespace
        join, candidate_values = "json_each(?) one CROSS JOIN ", [json.dumps(candidates)]
        where = f"e.id = one.value AND {where}"
    if query.min_cosine is not None:
        where += " AND cosine >= ?"
        values.append(query.min_cosine)
    sql = f"""
        SELECT e.id, e.key, e.namespace, 1 - vec_distance_cosine(v.vector, ?) AS cosine
        FROM {join}entries e JOIN vectors v ON v.entry = e.id
        WHERE {where} ORDER BY cosine DESC, e.key, e.namespace LIMIT ?"""
    return _select_hits(db, sql, (query.vector, *candidate_values, *values, count), "cosine")


def _by_text(
    db: apsw.Connection, word_index: SqliteWordIndex, query: SearchQuery, count: int
) -> list[_RankedHit]:
    """Return the best hits. Entries of other namespaces do not affect the value."""
    ranked = word_index.rank(db, query.words, query.namespaces, query.now) if query.words else None
    if ranked is None:
        return _by_text_in_sql(db, query, count)
    if query.conditions:
        ranked = ranked.restricted_to(_matching_entries(db, query))
    for width in (count, 32 * count, len(ranked.entries)):
        matches = _best_entries(db, query, ranked.best(width), count)
        if len(matches) == count or width >= len(ranked.entries):
            break
    return matches


def _matching_entries(db: apsw.Connection, query: SearchQuery) -> list[int]:
    where, values = where_of(query)
    return [
        number for (number,) in fetch_all(db, f"SELECT e.id FROM entries e WHERE {where}", values)
    ]


def _best_entries(
    db: apsw.Connection, query: SearchQuery, scores: Mapping[int, float], count: int
) -> list[_RankedHit]:
    """Return the best of the entries; ties are sorted by key."""
    sql = (
        f"SELECT e.id, e.key, e.namespace FROM entries e WHERE e.id IN (SELECT value "
        f"FROM json_each(?)){_min_cosine_sql(query)}"
    )
    cosine_values = (
        [] if query.min_cosine is None or query.vector is None else [query.vector, query.min_cosine]
    )
    matches = [
        _RankedHit(number, key, namespace, scores[number])
        for number, key, namespace in each_row(
            db,
            sql,
            (json.dumps(list(scores)), *cosine_values),
            ("id", "key", "namespace"),
            key_columns=3,
        )
    ]
    return sorted(matches, key=lambda hit: (-hit.value, hit.key, hit.namespace))[:count]


def _by_text_in_sql(db: apsw.Connection, query: SearchQuery, count: int) -> list[_RankedHit]:
    """Like `_by_text`, entry by entry."""
    total, size = namespace_totals(db, query.namespaces)
    counted = sorted(
        (number, word) for word in query.words if (number := _count_matching(db, query, word))
    )
    if not counted:
        return []
    weights = [inverse_frequency(total, number) for number, _ in counted[:MAX_WEIGHTED_WORDS]]
    match_query = " OR ".join(word for _, word in counted)
    where, values = where_of(query)
    sql = f"""
        SELECT e.id, e.key, e.namespace, {relevance.NAME}(words_of, e.bytes / ?, ?) AS best
        FROM words_of CROSS JOIN entries e ON e.id = words_of.rowid
        WHERE words_of MATCH ? AND {where}{_min_cosine_sql(query)}
        ORDER BY best DESC, e.key, e.namespace LIMIT ?"""
    cosine_values = (
        [] if query.min_cosine is None or query.vector is None else [query.vector, query.min_cosine]
    )
    bound = (
        size / total,
        relevance.pack_weights(weights),
        match_query,
        *values,
        *cosine_values,
        count,
    )
    return _select_hits(db, sql, bound, "best")


def _select_hits(
    db: apsw.Connection, sql: str, values: Sequence[Any], value: str
) -> list[_RankedHit]:
    """Return the hits of a query; its last column is the value."""
    return [
        _RankedHit(*record)
        for record in each_row(db, sql, values, ("id", "key", "namespace", value), key_columns=3)
    ]


def _count_matching(db: apsw.Connection, query: SearchQuery, word: str) -> int:
    """Return the number of entries of the requested namespaces with a word."""
    where, values = where_of(replace(query, conditions=()))
    sql = f"""
        SELECT count(*) FROM words_of CROSS JOIN entries e ON e.id = words_of.rowid
        WHERE words_of MATCH ? AND {where}"""
    number: int = fetch_all(db, sql, (word, *values))[0][0]
    return number


def _min_cosine_sql(query: SearchQuery) -> str:
    if query.min_cosine is None or query.vector is None:
        return ""
    return (
        " AND 1 - vec_distance_cosine((SELECT vector FROM vectors v WHERE v.entry = e.id), ?) >= ?"
    )


def _hit(
    db: apsw.Connection, number: int, score: float, vector: bytes | None, bm25: float | None
) -> Hit:
    record = next(raw_entries(db, "e.id = ?", (number,)))
    cosine = None
    if vector is not None:
        sql = "SELECT 1 - vec_distance_cosine(vector, ?) FROM vectors WHERE entry = ?"
        cosine_row = fetch_one(db, sql, (vector, number))
        cosine = None if cosine_row is None else cosine_row[0]
    return Hit(entry=entry_from_row(record), score=score, cosine=cosine, bm25=bm25)
