"""The SQL of a search."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from agentbox.adapters.runtime.input_checks import check_text
from agentbox.contracts.event_search import MAX_SEARCH_TYPES, EventSearch
from agentbox.contracts.events import MAX_NAME
from agentbox.core.records.wire import invalid_value
from agentbox.core.storage.sqlite import fetch_all, fetch_one

_TRACE = re.compile(r"[0-9a-f]{8,32}")


def check_search(search: EventSearch) -> None:
    """Raises ValidationError."""
    for name in ("words", "agent_id", "session_id"):
        if (value := getattr(search, name)) is not None:
            check_text(value, f"/{name}", max_length=MAX_NAME)
    if len(search.types) > MAX_SEARCH_TYPES:
        raise invalid_value("/types", f"has more than {MAX_SEARCH_TYPES} items")
    if search.trace_id is not None and not _TRACE.fullmatch(search.trace_id):
        raise invalid_value("/trace_id", "must be 8 to 32 digits from 0-9 and a-f")


def find_seqs(db: apsw.Connection, search: EventSearch, before: int, limit: int) -> list[int]:
    """Numbers of matching records below `before`, newest first."""
    match = _match_of(search)
    if search.words.strip() and not match:  # signs only: in no record
        return []
    low, high = _bounds(db, search, before)
    sql, values = _conditions(search)
    if match:
        types, type_values = _type_condition(search.types)
        query = (
            "SELECT e.seq FROM words CROSS JOIN events e ON e.seq = words.rowid WHERE words MATCH ?"
            f" AND words.rowid >= ? AND words.rowid < ?{sql}{types} ORDER BY words.rowid DESC"
        )
        return _seqs(db, query, (match, low, high, *values, *type_values), limit)
    table = "events e" if search.trace_id is None else "events e INDEXED BY events_trace"
    query = f"SELECT e.seq FROM {table} WHERE e.seq >= ? AND e.seq < ?{sql}"
    if not search.types:
        return _seqs(db, f"{query} ORDER BY e.seq DESC", (low, high, *values), limit)
    found: list[int] = []  # the newest of each type: an index has them in order
    for name in _stored_types(db, search.types):
        one = f"{query} AND e.type = ? ORDER BY e.seq DESC"
        found += _seqs(db, one, (low, high, *values, name), limit)
    return sorted(found, reverse=True)[:limit]


def _seqs(db: apsw.Connection, query: str, values: Sequence[Any], limit: int) -> list[int]:
    return [row[0] for row in fetch_all(db, f"{query} LIMIT ?", (*values, limit))]


def _bounds(db: apsw.Connection, search: EventSearch, before: int) -> tuple[int, int]:
    """The first number, and the one after the last."""
    low, high = 0, before
    query = "SELECT seq FROM events WHERE at >= ? ORDER BY at, seq LIMIT 1"
    if search.since is not None:
        row = fetch_one(db, query, (milliseconds(search.since),))
        low = before if row is None else row[0]
    if search.until is not None:
        row = fetch_one(db, query, (milliseconds(search.until),))
        high = before if row is None else min(before, row[0])
    return low, high


def _conditions(search: EventSearch) -> tuple[str, list[Any]]:
    """SQL of the conditions but types and time, each beginning with AND, and their values."""
    sql, values = "", list[Any]()
    for name in ("agent_id", "session_id"):
        if (value := getattr(search, name)) is not None:
            sql += f" AND e.{name} = ?"
            values.append(value)
    if search.trace_id is not None:
        sql += " AND e.trace_id >= ? AND e.trace_id < ?"
        values += (search.trace_id, f"{search.trace_id}g")  # no trace id has a character above f
    return sql, values


def _type_condition(types: Sequence[str]) -> tuple[str, list[Any]]:
    """`slot.*` are the types from `slot.` on and before `slot/`."""
    choices, values = list[str](), list[Any]()
    for pattern in types:
        if pattern.endswith(".*"):
            choices.append("(e.type >= ? AND e.type < ?)")
            values += (pattern[:-1], f"{pattern[:-2]}/")
        else:
            choices.append("e.type = ?")
            values.append(pattern)
    return (f" AND ({' OR '.join(choices)})" if choices else ""), values


def _stored_types(db: apsw.Connection, types: Sequence[str]) -> list[str]:
    """The types that match, each once."""
    found = {pattern for pattern in types if not pattern.endswith(".*")}
    query = "SELECT type FROM events WHERE type > ? AND type < ? ORDER BY type LIMIT 1"
    for pattern in types:
        if pattern.endswith(".*"):
            after, end = pattern[:-1], f"{pattern[:-2]}/"
            while (row := fetch_one(db, query, (after, end))) is not None:
                after = row[0]
                found.add(after)
    return sorted(found)


def _match_of(search: EventSearch) -> str:
    """The FTS5 query for records with all of these words: each is a phrase, one that ends with * a
    prefix. "" without words. Ids are in the index too: as phrases they make it quick to find few
    records among many."""
    phrases = []
    for word in search.words.split():
        is_prefix = word.endswith("*")
        text = word.rstrip("*").replace("\0", " ").replace('"', '""')
        if any(map(str.isalnum, text)):
            phrases.append(f'"{text}"{"*" if is_prefix else ""}')
    if phrases:
        phrases.extend(
            '"' + value.replace("\0", " ").replace('"', '""') + '"'
            for value in filter(None, (search.agent_id, search.session_id))
            if value.isascii() and any(map(str.isalnum, value))
        )
    return " ".join(phrases)


def milliseconds(moment: datetime) -> int:
    """Since 1970."""
    return int(moment.timestamp() * 1000)
