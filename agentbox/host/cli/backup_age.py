"""The line of `status` about backups."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agentbox.core import clock

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"))


def last_backup(items: Sequence[Mapping[str, Any]], now: datetime) -> str:
    """`3 h ago, verified`; what failed, or is being made, after the last one that is there."""
    newest = items[0] if items else None
    made = next((row for row in items if row["state"] == "created"), None)
    text = "none" if made is None else f"{_age(made, now)} ago{_state(made)}"
    if newest is None or newest is made:
        return text
    if newest["state"] == "failed":
        return f"{text}; {_age(newest, now)} ago one failed: {newest['reason']}"
    return f"{text}; one is being made"


def _state(made: Mapping[str, Any]) -> str:
    partial = f", without {', '.join(made['partial'])}" if made["partial"] else ""
    return f"{', verified' if made['verified_at'] else ''}{partial}"


def _age(row: Mapping[str, Any], now: datetime) -> str:
    seconds = max(0, int((now - clock.from_wire(row["time"])).total_seconds()))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
