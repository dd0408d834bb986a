"""Finding entries in `memory.db`: exactly by vector, by words, or by both."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from agentbox.adapters.memory.contract import Hit
from agentbox.adapters.memory.filters import Condition
from agentbox.adapters.memory.ranking import depth, fuse, text_score
from agentbox.adapters.memory.rows import COLUMNS, LIVE, entry_of, typed
from agentbox.adapters.sqlite import row, rows

_WORD = re.compile(r"\w+")
_COMPARE = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


@dataclass(frozen=True, slots=True)
class Question:
    """A search that was checked. `vector` is None when the query has no tokens, or only words are asked for."""

    words: str
    vector: bytes | None
    namespaces: tuple[str, ...]
    limit: int
    mode: str
    conditions: tuple[Condition, ...]
    min_cosine: float | None
    now: int


def words_of(query: str) -> str:
    """An FTS5 query for any of the words. Each is quoted, so that no operator of the query language is left (M11)."""
    return " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(query)))


def search(db: apsw.Connection, asked: Question) -> tuple[Hit, ...]:
    """The best hits, by score and then by key."""
    where, values = where_of(asked)
    most = asked.limit if asked.mode != "hybrid" else depth(asked.limit)
    by_vector = {} if asked.mode == "text" else _by_vector(db, asked, where, values, most)
    by_text = {} if asked.mode == "vector" else _by_text(db, asked, where, values, most)
    if asked.mode == "hybrid":
        scores = fuse(list(by_vector), list(by_text))
    elif asked.mode == "vector":
        scores = by_vector
    else:
        scores = {number: text_score(bm25) for number, bm25 in by_text.items()}
    hits = [_hit(db, number, score, asked.vector, by_text.get(number)) for number, score in scores.items()]
    hits.sort(key=lambda hit: (-hit.score, hit.entry.key, hit.entry.namespace))
    return tuple(hits[: asked.limit])


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
    has = "EXISTS (SELECT 1 FROM metadata m WHERE m.entry = e.id AND m.key = ?"
    if one.op == "exists":
        return f"{'' if one.values[0] else 'NOT '}{has})", [one.key]
    if one.op in _COMPARE:
        kind, number, words = typed(one.values[0])
        column, value = ("number", number) if kind == "n" else ("words", words)
        return f"{has} AND m.kind = ? AND m.{column} {_COMPARE[one.op]} ?)", [one.key, kind, value]
    same = " OR ".join("(m.kind = ? AND m.number IS ? AND m.words IS ?)" for _ in one.values)
    bound: list[Any] = [one.key]
    for value in one.values:
        bound += typed(value)
    return f"{'NOT ' if one.op == 'ne' else ''}{has} AND ({same}))", bound


def _by_vector(db: apsw.Connection, asked: Question, where: str, values: list[Any], most: int) -> dict[int, float]:
    """Entry -> cosine, best first."""
    if asked.vector is None:
        return {}
    sql = f"""
        SELECT e.id, 1 - vec_distance_cosine(v.vector, ?) AS cosine FROM entries e JOIN vectors v ON v.entry = e.id
        WHERE {where}{" AND cosine >= ?" if asked.min_cosine is not None else ""} ORDER BY cosine DESC, e.key LIMIT ?"""
    least = [] if asked.min_cosine is None else [asked.min_cosine]
    return dict(rows(db, sql, (asked.vector, *values, *least, most)))


def _by_text(db: apsw.Connection, asked: Question, where: str, values: list[Any], most: int) -> dict[int, float]:
    """Entry -> BM25, best first. FTS5 gives it negated, with k1 = 1.2 and b = 0.75 over the whole store."""
    if not asked.words:
        return {}
    sql = f"""
        SELECT e.id, -bm25(words_of) AS best FROM words_of JOIN entries e ON e.id = words_of.rowid
        WHERE words_of MATCH ? AND {where}{_least(asked)} ORDER BY best DESC, e.key LIMIT ?"""
    least = [] if asked.min_cosine is None or asked.vector is None else [asked.vector, asked.min_cosine]
    return dict(rows(db, sql, (asked.words, *values, *least, most)))


def _least(asked: Question) -> str:
    if asked.min_cosine is None or asked.vector is None:
        return ""
    return " AND 1 - vec_distance_cosine((SELECT vector FROM vectors v WHERE v.entry = e.id), ?) >= ?"


def _hit(db: apsw.Connection, number: int, score: float, vector: bytes | None, bm25: float | None) -> Hit:
    found = row(db, f"SELECT {COLUMNS} FROM entries e WHERE e.id = ?", (number,))
    assert found is not None
    cosine = None
    if vector is not None:
        sql = "SELECT 1 - vec_distance_cosine(vector, ?) FROM vectors WHERE entry = ?"
        near = row(db, sql, (vector, number))
        cosine = None if near is None else near[0]
    return Hit(entry=entry_of(found), score=score, cosine=cosine, bm25=bm25)
