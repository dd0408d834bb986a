"""The line of `status` about backups."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from agentbox.core import clock

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"))


def last_backup(backups: Mapping[str, Any], now: datetime) -> str:
    """`3 h ago, verified; repository checked 5 h ago`; what failed, or is being made, after the
    last one that is there; what is damaged.
    """
    items = backups["items"]
    newest = items[0] if items else None
    made = next((row for row in items if row["state"] == "created"), None)
    text = "none" if made is None else f"{_age(made['time'], now)} ago{_state(made)}"
    if newest is None or newest is made:
        pass
    elif newest["state"] == "failed":
        text = f"{text}; {_age(newest['time'], now)} ago one failed: {newest['reason']}"
    else:
        text = f"{text}; one is being made"
    return f"{text}{_checked(backups, now)}"


def _checked(backups: Mapping[str, Any], now: datetime) -> str:
    faults = list(backups.get("faults", ()))
    faults += [fault for row in backups["items"] for fault in row.get("faults", ())]
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        return f"; damaged: {faults[0]}{more}"
    at = backups.get("checked_at")
    return f"; repository checked {_age(at, now)} ago" if at and backups["items"] else ""


def _state(made: Mapping[str, Any]) -> str:
    partial = f", without {', '.join(made['partial'])}" if made["partial"] else ""
    return f"{', verified' if made['verified_at'] else ''}{partial}"


def _age(time: str, now: datetime) -> str:
    seconds = max(0, int((now - clock.from_wire(time)).total_seconds()))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
