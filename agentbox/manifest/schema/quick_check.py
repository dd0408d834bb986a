"""A quick check of conformance to the tables: a manifest that passes needs no validator (ADR 0013).
jsonschema alone decides on errors and reports them; a test compares all results with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from agentbox.manifest.declarations.constraints import is_integer, is_number
from agentbox.manifest.declarations.key_path import KeyPath
from agentbox.manifest.declarations.specs import (
    KeySpec,
    MapSpec,
    TableSpec,
    item_spec,
    manifest_spec,
)
from agentbox.manifest.types import Size, SizeText


def passes_quick_check(written: Mapping[str, Any]) -> bool:
    """True if a manifest conforms and no table has both keys of an `_env` and `_file` pair."""
    return _fits_table(written, manifest_spec()) and next(exclusive_pairs(written), None) is None


def exclusive_pairs(
    table: Mapping[str, Any], path: KeyPath = ()
) -> Iterator[tuple[KeyPath, KeyPath]]:
    """`x_file` and `x_env` in one table: two ways to set one value."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from exclusive_pairs(value, (*path, name))
        other = name.removesuffix("_file") + "_env"
        if name.endswith("_file") and other in table:
            yield (*path, name), (*path, other)


def _fits_table(value: Any, spec: TableSpec) -> bool:
    """A table with known members, the required ones, and what these need."""
    return (
        isinstance(value, dict)
        and value.keys() <= spec.members.keys()
        and all(name in value for name in spec.required)
        and all(_fits_member(item, spec.members[name], value) for name, item in value.items())
    )


def _fits_member(
    value: Any, member: KeySpec | TableSpec | MapSpec, table: Mapping[str, Any]
) -> bool:
    if isinstance(member, TableSpec):
        return _fits_table(value, member)
    if isinstance(member, MapSpec):
        return isinstance(value, dict) and all(
            (name in member.names if member.names else _fits(name, member.name_hint))
            and _fits_table(entry, member.entry)
            for name, entry in value.items()
        )
    return all(name in table for name in member.needs) and _fits(value, member.hint)


def _fits(value: Any, hint: Any) -> bool:
    """Whether plain data has a type and meets its constraints."""
    if get_origin(hint) is Annotated:
        base, *marks = get_args(hint)
        return _fits(value, base) and all(mark.allows(value) for mark in marks)
    if get_origin(hint) is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(hint))
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return isinstance(value, list) and all(_fits(element, item) for element in value)
    if hint is Size:
        return _fits(value, SizeText)
    if hint is int:
        return is_integer(value)
    if hint is float:
        return is_number(value)
    if isinstance(hint, type) and is_dataclass(hint):
        return _fits_table(value, item_spec(hint))
    return isinstance(value, hint)
