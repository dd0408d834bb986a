"""Conditions of a search as SQL."""

from collections.abc import Iterable
from typing import Any


def join_conditions(conditions: Iterable[tuple[str, list[Any]]]) -> tuple[str, list[Any]]:
    """Return ` AND ...` for each condition, and all bound values."""
    sql, values = "", []
    for clause, bound in conditions:
        sql += f" AND {clause}"
        values += bound
    return sql, values
