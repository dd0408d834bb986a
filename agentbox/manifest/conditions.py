"""When a key is used: `x-agentbox-when` of the schema, with full key paths."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from agentbox.manifest.keys import generic_path
from agentbox.manifest.schema.bundle import properties


@dataclass(frozen=True)
class KeyCondition:
    """`key` must hold one of `values`, or, when `negated`, none of them."""

    key: str
    values: tuple[Any, ...]
    negated: bool = False

    def holds(self, value: Any) -> bool:
        """Whether the dependent key is used with that value."""
        return (value in self.values) != self.negated

    @property
    def is_switch(self) -> bool:
        """True for an on/off key; false for a choice of implementation or mode."""
        return all(isinstance(value, bool) for value in self.values) and bool(self.values)


def conditions_of(path: str) -> tuple[KeyCondition, ...]:
    """The conditions of a real key path, with its map entry filled in."""
    pattern = generic_path(path)
    names = [
        name for name, part in zip(path.split("."), pattern.split("."), strict=True) if part == "*"
    ]
    required = conditions().get(pattern, ())
    return (
        tuple(replace(item, key=item.key.replace("*", names[0], 1)) for item in required)
        if names
        else required
    )


@cache
def conditions() -> Mapping[str, tuple[KeyCondition, ...]]:
    """Key path -> conditions that must all hold for the key to be used. Keys that are always used
    are absent. Names of map entries are `*` on both sides; `conditions_of` fills one in.
    """
    result = {}
    for path, schema in properties():
        if required := schema.get("x-agentbox-when"):
            table = path.rpartition(".")[0]
            result[generic_path(path)] = tuple(
                _condition(table, key, values) for key, values in required.items()
            )
    return result


def _condition(table: str, key: str, values: Any) -> KeyCondition:
    full_key = f"{table}{key}" if key.startswith(".") else key
    negated = isinstance(values, dict)
    return KeyCondition(full_key, tuple(values["not"] if negated else values), negated)
