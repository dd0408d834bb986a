"""The SQL of a search."""

import re
from datetime import datetime
from typing import Any

from agentbox.adapters.runtime.input_checks import check_text
from agentbox.contracts.events import MAX_NAME, EventSearch
from agentbox.core.records.wire import invalid_value

MAX_WORDS = 32
MAX_TYPES = 64
_TRACE = re.compile(r"[0-9a-f]{8,32}")


def check_search(search: EventSearch) -> None:
    """Raises ValidationError."""
    for name in ("words", "agent_id", "session_id"):
        if (value := getattr(search, name)) is not None:
            check_text(value, f"/{name}", max_length=MAX_NAME)
    if len(search.words.split()) > MAX_WORDS:
        raise invalid_value("/words", f"has more than {MAX_WORDS} words")
    if len(search.types) > MAX_TYPES:
        raise invalid_value("/types", f"has more than {MAX_TYPES} items")
    if search.trace_id is not None and not _TRACE.fullmatch(search.trace_id):
        raise invalid_value("/trace_id", "must be 8 to 32 digits from 0-9 and a-f")


def conditions(search: EventSearch) -> tuple[str, list[Any]]:
    """SQL of the conditions on `events`, each beginning with AND, and their values."""
    sql, values = "", list[Any]()
    if search.types:
        choices = []
        for pattern in search.types:
            if pattern.endswith(".*"):  # the types from `slot.` on and before `slot/`
                choices.append("(e.type >= ? AND e.type < ?)")
                values += (pattern[:-1], f"{pattern[:-2]}/")
            else:
                choices.append("e.type = ?")
                values.append(pattern)
        sql += f" AND ({' OR '.join(choices)})"
    for name in ("agent_id", "session_id"):
        if (value := getattr(search, name)) is not None:
            sql += f" AND e.{name} = ?"
            values.append(value)
    if search.trace_id is not None:
        sql += " AND e.trace_id >= ? AND e.trace_id < ?"
        values += (search.trace_id, f"{search.trace_id}g")  # no trace id has a character above f
    for sign, moment in ((">=", search.since), ("<", search.until)):
        if moment is not None:
            sql += f" AND e.at {sign} ?"
            values.append(milliseconds(moment))
    return sql, values


def match_of(words: str) -> str:
    """The FTS5 query for records with all of these words: each is a phrase, one that ends with * a
    prefix. "" without words."""
    phrases = []
    for word in words.split():
        is_prefix = word.endswith("*")
        text = word.rstrip("*").replace("\0", " ").replace('"', '""')
        if any(map(str.isalnum, text)):
            phrases.append(f'"{text}"{"*" if is_prefix else ""}')
    return " ".join(phrases)


def milliseconds(moment: datetime) -> int:
    """Since 1970."""
    return int(moment.timestamp() * 1000)
