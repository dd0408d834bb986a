"""The metadata filter of a search (M3). Each implementation translates it to SQL."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentbox.adapters.runtime.input_checks import check_json, check_text
from agentbox.contracts.memory import MAX_CHOICES, MAX_CONDITIONS
from agentbox.core.records.wire import invalid_value

Op = Literal["eq", "in", "ne", "gt", "gte", "lt", "lte", "exists"]
_OPS = ("in", "ne", "gt", "gte", "lt", "lte", "exists")


@dataclass(frozen=True, slots=True)
class FilterCondition:
    """A condition on one key. `values` are scalars; for `exists` one boolean.

    Comparisons hold only between two numbers or two strings; `ne` also holds for an absent key.
    """

    key: str
    op: Op
    values: tuple[Any, ...]


def parse_filter(
    filter: Mapping[str, Any], pointer: str = "/filter"
) -> tuple[FilterCondition, ...]:
    """Return the conditions, all of which must hold. Raises ValidationError."""
    if not isinstance(filter, Mapping):
        raise invalid_value(pointer, "must be an object")
    conditions: list[FilterCondition] = []
    for key, operand in filter.items():
        check_text(key, pointer)
        if isinstance(operand, Mapping):
            conditions += [
                _parse_condition(key, op, value, f"{pointer}/{key}/{op}")
                for op, value in operand.items()
            ]
        else:
            conditions.append(FilterCondition(key, "eq", (_scalar(operand, f"{pointer}/{key}"),)))
    if len(conditions) > MAX_CONDITIONS:
        raise invalid_value(
            pointer, f"has {len(conditions)} conditions, the maximum is {MAX_CONDITIONS}"
        )
    return tuple(conditions)


def kind_of(value: Any) -> str:
    """Return the kind that two comparable values share: `b`oolean, `n`umber, `s`tring, `0` for
    null."""
    if value is None:
        return "0"
    if isinstance(value, bool):
        return "b"
    return "n" if isinstance(value, int | float) else "s"


def _parse_condition(key: str, op: str, value: Any, pointer: str) -> FilterCondition:
    if op not in _OPS:
        raise invalid_value(pointer, f"is an unknown operator; allowed: {', '.join(_OPS)}")
    if op == "exists":
        if not isinstance(value, bool):
            raise invalid_value(pointer, "must be true or false")
        return FilterCondition(key, "exists", (value,))
    if op == "in":
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_CHOICES:
            raise invalid_value(pointer, f"must be a list of 1 to {MAX_CHOICES} scalars")
        return FilterCondition(key, "in", tuple(_scalar(item, pointer) for item in value))
    if op != "ne" and kind_of(_scalar(value, pointer)) not in "ns":
        raise invalid_value(pointer, "must be a number or a string")
    return FilterCondition(key, op, (_scalar(value, pointer),))  # type: ignore[arg-type]  # one of _OPS


def _scalar(value: Any, pointer: str) -> Any:
    if value is not None and not isinstance(value, bool | int | float | str):
        raise invalid_value(pointer, "must be a string, a number, true, false or null")
    check_json(value, pointer)
    return value
