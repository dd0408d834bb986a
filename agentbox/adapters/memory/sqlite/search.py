"""Finding entries in `memory.db`: exactly by vector, by words, or by both."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apsw

from agentbox.adapters.memory import relevance
from agentbox.adapters.memory.filters import Condition
from agentbox.adapters.memory.ranking import WEIGHED, depth, fuse, inverse_frequency, text_score
from agentbox.adapters.memory.sqlite.nearest import Vectors
from agentbox.adapters.memory.sqlite.rows import LIVE, entry_of, raw_entries, typed
from agentbox.adapters.memory.sqlite.words import Words, counts
from agentbox.contracts.memory import Hit
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import row, rows
from agentbox.core.storage.sqlite_text import each_row

_WORD = re.compile(r"\w+")
_COMPARE = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


@dataclass(frozen=True, slots=True)
class Question:
    """A search that was checked. `vector` is None when the query has no tokens, or only words are asked for."""

    words: tuple[str, ...]
    vector: bytes | None
    namespaces: tuple[str, ...]
    limit: int
    mode: str
    conditions: tuple[Condition, ...]
    min_cosine: float | None
    now: int


@dataclass(frozen=True, slots=True)
class _Found:
    """A place in one of the two lists."""

    id: int
    key: str
    namespace: str
    value: float


def words_of(query: str) -> tuple[str, ...]:
    """Each word as an FTS5 query. It is quoted, so that no operator of the query language is left (M11)."""
    return tuple(f'"{word}"' for word in dict.fromkeys(_WORD.findall(query)))


def search(
    db: apsw.Connection, vectors: Vectors, words: Words, asked: Question, damaged: DamagedRows
) -> tuple[Hit, ...]:
    """The best hits, by score and then by key, without damaged ones."""
    most = asked.limit if asked.mode != "hybrid" else depth(asked.limit)
    by_vector = [] if asked.mode == "text" else _by_vector(db, vectors, asked, most)
    by_text = [] if asked.mode == "vector" else _by_text(db, words, asked, most)
    if asked.mode == "hybrid":
        scores = fuse([one.id for one in by_vector], [one.id for one in by_text])
    elif asked.mode == "vector":
        scores = {one.id: one.value for one in by_vector}
    else:
        scores = {one.id: text_score(one.value) for one in by_text}
    names = {one.id: (one.key, one.namespace) for one in (*by_vector, *by_text)}
    best = sorted(scores, key=lambda number: (-scores[number], *names[number]))[: asked.limit]
    bm25 = {one.id: one.value for one in by_text}
    return damaged.readable(best, lambda number: _hit(db, number, scores[number], asked.vector, bm25.get(number)))


def where_of(asked: Question) -> tuple[str, list[Any]]:
    """The condition on `entries e` that every hit satisfies, with bound values."""
    marks = ", ".join("?" for _ in asked.namespaces)
    sql, values = f"e.namespace IN ({marks}) AND {LIVE}", [*asked.namespaces, asked.now]
    more, bound = conditions_sql(asked.conditions)
    return sql + more, values + bound


def conditions_sql(conditions: Sequence[Condition]) -> tuple[str, list[Any]]:
    """` AND ...` for each condition."""
    sql, values = "", []
    for one in conditions:
        part, bound = _condition(one)
        sql += f" AND {part}"
        values += bound
    return sql, values


def _condition(one: Condition) -> tuple[str, list[Any]]:
    has = "IN (SELECT m.entry FROM metadata m WHERE m.key = ?"
    if one.op == "exists":
        return f"e.id {'' if one.values[0] else 'NOT '}{has})", [one.key]
    if one.op in _COMPARE:
        kind, number, words = typed(one.values[0])
        column, value = ("number", number) if kind == "n" else ("words", words)
        return f"e.id {has} AND m.kind = ? AND m.{column} {_COMPARE[one.op]} ?)", [one.key, kind, value]
    same = " OR ".join("(m.kind = ? AND m.number IS ? AND m.words IS ?)" for _ in one.values)
    bound: list[Any] = [one.key]
    for value in one.values:
        bound += typed(value)
    return f"e.id {'NOT ' if one.op == 'ne' else ''}{has} AND ({same}))", bound


def _by_vector(db: apsw.Connection, vectors: Vectors, asked: Question, most: int) -> list[_Found]:
    """Best first, the value is the cosine. Each vector that the filter keeps is compared, or is known to be no nearer."""
    if asked.vector is None:
        return []
    for wide in (most, 4 * most, 32 * most):
        near = vectors.near(db, asked.vector, asked.namespaces, wide)
        if near is None:
            break
        found = _measured(db, asked, most, near.entries)
        last = found[-1].value if len(found) == most else asked.min_cosine
        if near.beyond < -1 or (last is not None and last > near.beyond):
            return found
    return _measured(db, asked, most, None)


def _measured(db: apsw.Connection, asked: Question, most: int, among: list[int] | None) -> list[_Found]:
    """The nearest of those entries, or of all, as sqlite-vec measures them."""
    where, values = where_of(asked)
    some, chosen = "", []
    if among is not None:  # CROSS JOIN: else SQLite walks through the whole namespace
        some, chosen = "json_each(?) one CROSS JOIN ", [json.dumps(among)]
        where = f"e.id = one.value AND {where}"
    if asked.min_cosine is not None:
        where += " AND cosine >= ?"
        values.append(asked.min_cosine)
    sql = f"""
        SELECT e.id, e.key, e.namespace, 1 - vec_distance_cosine(v.vector, ?) AS cosine
        FROM {some}entries e JOIN vectors v ON v.entry = e.id
        WHERE {where} ORDER BY cosine DESC, e.key, e.namespace LIMIT ?"""
    return _found(db, sql, (asked.vector, *chosen, *values, most), "cosine")


def _by_text(db: apsw.Connection, words: Words, asked: Question, most: int) -> list[_Found]:
    """Best first. What other namespaces hold moves no value."""
    ranked = words.ranked(db, asked.words, asked.namespaces, asked.now) if asked.words else None
    if ranked is None:
        return _by_text_in_sql(db, asked, most)
    if asked.conditions:
        ranked = ranked.among(_satisfying(db, asked))
    for wide in (most, 32 * most, len(ranked.entries)):
        found = _named(db, asked, ranked.best(wide), most)
        if len(found) == most or wide >= len(ranked.entries):
            break
    return found


def _satisfying(db: apsw.Connection, asked: Question) -> list[int]:
    where, values = where_of(asked)
    return [number for (number,) in rows(db, f"SELECT e.id FROM entries e WHERE {where}", values)]


def _named(db: apsw.Connection, asked: Question, scores: Mapping[int, float], most: int) -> list[_Found]:
    """The best of those entries; the smaller key comes first among equals."""
    sql = (
        f"SELECT e.id, e.key, e.namespace FROM entries e WHERE e.id IN (SELECT value FROM json_each(?)){_least(asked)}"
    )
    least = [] if asked.min_cosine is None or asked.vector is None else [asked.vector, asked.min_cosine]
    found = [
        _Found(number, key, namespace, scores[number])
        for number, key, namespace in each_row(
            db, sql, (json.dumps(list(scores)), *least), ("id", "key", "namespace"), named=3
        )
    ]
    return sorted(found, key=lambda one: (-one.value, one.key, one.namespace))[:most]


def _by_text_in_sql(db: apsw.Connection, asked: Question, most: int) -> list[_Found]:
    """The same, entry by entry."""
    total, size = counts(db, asked.namespaces)
    counted = sorted((number, word) for word in asked.words if (number := _having(db, asked, word)))
    if not counted:
        return []
    weights = [inverse_frequency(total, number) for number, _ in counted[:WEIGHED]]
    words = " OR ".join(word for _, word in counted)
    where, values = where_of(asked)
    sql = f"""
        SELECT e.id, e.key, e.namespace, {relevance.NAME}(words_of, e.bytes / ?, ?) AS best
        FROM words_of CROSS JOIN entries e ON e.id = words_of.rowid
        WHERE words_of MATCH ? AND {where}{_least(asked)} ORDER BY best DESC, e.key, e.namespace LIMIT ?"""
    least = [] if asked.min_cosine is None or asked.vector is None else [asked.vector, asked.min_cosine]
    bound = (size / total, relevance.packed(weights), words, *values, *least, most)
    return _found(db, sql, bound, "best")


def _found(db: apsw.Connection, sql: str, values: Sequence[Any], value: str) -> list[_Found]:
    """What a query has found, of which the last column is the value."""
    return [_Found(*one) for one in each_row(db, sql, values, ("id", "key", "namespace", value), named=3)]


def _having(db: apsw.Connection, asked: Question, word: str) -> int:
    """How many entries of the namespaces asked have that word."""
    where, values = where_of(replace(asked, conditions=()))
    sql = f"""
        SELECT count(*) FROM words_of CROSS JOIN entries e ON e.id = words_of.rowid
        WHERE words_of MATCH ? AND {where}"""
    number: int = rows(db, sql, (word, *values))[0][0]
    return number


def _least(asked: Question) -> str:
    if asked.min_cosine is None or asked.vector is None:
        return ""
    return " AND 1 - vec_distance_cosine((SELECT vector FROM vectors v WHERE v.entry = e.id), ?) >= ?"


def _hit(db: apsw.Connection, number: int, score: float, vector: bytes | None, bm25: float | None) -> Hit:
    found = next(raw_entries(db, "e.id = ?", (number,)))
    cosine = None
    if vector is not None:
        sql = "SELECT 1 - vec_distance_cosine(vector, ?) FROM vectors WHERE entry = ?"
        near = row(db, sql, (vector, number))
        cosine = None if near is None else near[0]
    return Hit(entry=entry_of(found), score=score, cosine=cosine, bm25=bm25)
