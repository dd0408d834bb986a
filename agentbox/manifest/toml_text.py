"""Values and types in TOML notation, for messages."""

import json
import re
from datetime import date, datetime, time
from typing import Any, Final

from agentbox.manifest.secrets import is_credential

_MAX_DISPLAYED: Final = 60
_TYPES: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a float"),
    (str, "a string"),
    (list, "an array"),
    (dict, "a table"),
    ((datetime, date, time), "a date or time"),
)
TYPE_EXAMPLES: Final = {
    "boolean": ("a boolean", "true"),
    "integer": ("an integer", "10"),
    "number": ("a number", "1.5"),
    "string": ("a string", '"text"'),
    "array": ("an array", '["item"]'),
    "object": ("a table", '{ key = "value" }'),
}


def type_name(value: Any) -> str:
    """`a string`, `an integer`, ..."""
    return next(name for kind, name in _TYPES if isinstance(value, kind))


def format_short(value: Any) -> str:
    """A value in TOML notation, shortened to one line; credentials are not shown."""
    if isinstance(value, str) and is_credential(value):
        return "<not shown: it looks like a credential>"
    if isinstance(value, (dict, list)):
        return type_name(value)
    text = format_toml(value)
    return text if len(text) <= _MAX_DISPLAYED else f"{text[:_MAX_DISPLAYED]}..."


def format_toml(value: Any) -> str:
    """A scalar or list of scalars as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace(
            "\x7f", "\\u007f"
        )  # valid in JSON, not in TOML
    if isinstance(value, list):
        return f"[{', '.join(map(format_toml, value))}]"
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{name} = {format_toml(item)}" for name, item in value.items()) + " }"
        )
    return str(value)


_QUANTITY: Final = re.compile(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([A-Za-zµ]*)\s*")
_SIZES: Final = {
    "": 1,
    "b": 1,
    **{f"{p}{s}": 1024 ** (n + 1) for n, p in enumerate("kmgt") for s in ("", "b", "ib")},
}
_TIMES: Final = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "seconds": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "minutes": 60,
}
_TIMES_LONG: Final = {
    "h": 3600,
    "hour": 3600,
    "hours": 3600,
    "d": 86400,
    "day": 86400,
    "days": 86400,
    "ms": 0.001,
    "": 1,
}


def as_size(text: str) -> str | None:
    """The size meant by text in another unit: `512MB` -> `512MiB`, `1.5GiB` -> `1536MiB`; None if
    it is not a size.
    """
    match = _QUANTITY.fullmatch(text)
    scale = _SIZES.get(match[2].lower()) if match else None
    if match is None or scale is None:
        return None
    count = float(match[1]) * scale
    if match[1].isdigit() and scale > 1 and int(match[1]) > 0:
        units = {1024**n: unit for n, unit in enumerate(("", "KiB", "MiB", "GiB", "TiB"))}
        return f"{int(match[1])}{units[scale]}"
    return _largest_unit(count)


def _largest_unit(count: float) -> str:
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= size and count % size == 0:
            return f"{int(count // size)}{unit}"
    return f"{max(1, round(count / 1024))}KiB"


def as_seconds(text: str) -> int | None:
    """The whole seconds meant by text with a unit: `30s` -> 30, `2m` -> 120; None if it is not a
    time.
    """
    match = _QUANTITY.fullmatch(text)
    scale = {**_TIMES, **_TIMES_LONG}.get(match[2].lower()) if match else None
    return None if match is None or scale is None else max(1, round(float(match[1]) * scale))
