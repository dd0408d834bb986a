"""Reads rows one by one, so that invalid UTF-8, which SQLite stores as it is, does not end a
listing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw


def each_row(
    db: apsw.Connection,
    sql: str,
    values: Sequence[Any],
    columns: Sequence[str],
    *,
    key_columns: int,
) -> Iterator[tuple[Any, ...]]:
    """The rows of a query with these first columns. If a row has invalid text, its other text
    columns are None, so that it is not taken for a valid one, and its first `key_columns` have a
    lone surrogate for each invalid byte.
    """
    cursor, number = db.execute(sql, values), 0
    while True:
        try:
            yield next(cursor)
        except StopIteration:
            return
        except UnicodeDecodeError:
            yield _without_text(db, sql, values, columns, key_columns, number)
        number += 1


def _without_text(
    db: apsw.Connection,
    sql: str,
    values: Sequence[Any],
    columns: Sequence[str],
    key_columns: int,
    number: int,
) -> tuple[Any, ...]:
    keys = [
        f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END"
        for name in columns[:key_columns]
    ]
    others = [
        f"CASE typeof({name}) WHEN 'text' THEN NULL ELSE {name} END"
        for name in columns[key_columns:]
    ]
    kinds = [f"typeof({name})" for name in columns[:key_columns]]
    selected = ", ".join((*keys, *others, *kinds))
    result = list(
        next(db.execute(f"SELECT {selected} FROM ({sql}) LIMIT 1 OFFSET {number}", values))
    )
    for index, kind in enumerate(result[len(columns) :]):
        if kind == "text":
            result[index] = result[index].decode("utf-8", "surrogateescape")
    return tuple(result[: len(columns)])
