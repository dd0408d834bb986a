"""The filter of a search (M3): which metadata an entry must have. Parsed once, written as SQL by each implementation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentbox.adapters.runtime.checks import check_json, check_text
from agentbox.core.records.wire import refuse

Op = Literal["eq", "in", "ne", "gt", "gte", "lt", "lte", "exists"]
_OPS = ("in", "ne", "gt", "gte", "lt", "lte", "exists")
MAX_CONDITIONS = 32
MAX_CHOICES = 100

_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_ORDERED = {"type": ["string", "number"]}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "maxProperties": MAX_CONDITIONS,
    "additionalProperties": {
        "anyOf": [
            _SCALAR,
            {
                "type": "object",
                "properties": {
                    "in": {"type": "array", "items": _SCALAR, "minItems": 1, "maxItems": MAX_CHOICES},
                    "ne": _SCALAR,
                    **dict.fromkeys(("gt", "gte", "lt", "lte"), _ORDERED),
                    "exists": {"type": "boolean"},
                },
                "additionalProperties": False,
            },
        ]
    },
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One demand on one key. `values` are scalars, except for `exists`, whose one value is a boolean.

    A comparison holds only between two numbers or two strings; `ne` holds for an absent key too.
    """

    key: str
    op: Op
    values: tuple[Any, ...]


def parse(flt: Mapping[str, Any], at: str = "/flt") -> tuple[Condition, ...]:
    """The conditions, all of which must hold. Raises ValidationError."""
    if not isinstance(flt, Mapping):
        raise refuse(at, "must be an object")
    found: list[Condition] = []
    for key, wanted in flt.items():
        check_text(key, at)
        if isinstance(wanted, Mapping):
            found += [_one(key, op, value, f"{at}/{key}/{op}") for op, value in wanted.items()]
        else:
            found.append(Condition(key, "eq", (_scalar(wanted, f"{at}/{key}"),)))
    if len(found) > MAX_CONDITIONS:
        raise refuse(at, f"has {len(found)} conditions, at most {MAX_CONDITIONS} are allowed")
    return tuple(found)


def kind_of(value: Any) -> str:
    """The kind that two values must share to be equal or ordered: `b`oolean, `n`umber, `s`tring, `0` for null."""
    if value is None:
        return "0"
    if isinstance(value, bool):
        return "b"
    return "n" if isinstance(value, int | float) else "s"


def _one(key: str, op: str, value: Any, at: str) -> Condition:
    if op not in _OPS:
        raise refuse(at, f"is no operator; they are {', '.join(_OPS)}")
    if op == "exists":
        if not isinstance(value, bool):
            raise refuse(at, "must be true or false")
        return Condition(key, "exists", (value,))
    if op == "in":
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_CHOICES:
            raise refuse(at, f"must be a list of 1 to {MAX_CHOICES} scalars")
        return Condition(key, "in", tuple(_scalar(item, at) for item in value))
    if op != "ne" and kind_of(_scalar(value, at)) not in "ns":
        raise refuse(at, "must be a number or a string")
    return Condition(key, op, (_scalar(value, at),))  # type: ignore[arg-type]  # one of _OPS


def _scalar(value: Any, at: str) -> Any:
    if value is not None and not isinstance(value, bool | int | float | str):
        raise refuse(at, "must be a string, a number, true, false or null")
    check_json(value, at)
    return value
