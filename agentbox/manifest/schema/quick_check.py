"""A quick check of conformance to the schema: yes or unknown. A yes avoids importing jsonschema,
which alone decides on errors. Unknown keywords give no result, so that the schema may change before
this file; a test compares all results with jsonschema.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from agentbox.manifest.keypath import KeyPath
from agentbox.manifest.schema.bundle import bundle


def passes_quick_check(written: Mapping[str, Any]) -> bool:
    """True if a manifest certainly conforms and no table has both keys of an `_env` and `_file`
    pair.
    """
    return _is_valid(written, bundle()) and next(exclusive_pairs(written), None) is None


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


def is_integer(value: object) -> bool:
    """TOML and the schema distinguish integers from floats and booleans."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Integers and finite floats."""
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the schema. Python's `$` also matches before a final newline; that of JSON
    Schema (ECMA 262) does not.
    """
    return re.compile(re.sub(r"(?<!\\)\$(?=\||\)|$)", r"\\Z", pattern))


def _is_valid(value: Any, schema: Mapping[str, Any]) -> bool:
    return all(
        keyword in _ANNOTATIONS
        or keyword.startswith("x-agentbox-")
        or _KEYWORDS.get(keyword, _unknown)(value, expected, schema)
        for keyword, expected in schema.items()
    )


def _unknown(_value: Any, _expected: Any, _schema: Mapping[str, Any]) -> bool:
    return False


def _reference(value: Any, expected: str, _schema: Mapping[str, Any]) -> bool:
    target: Any = bundle()
    for step in expected.removeprefix("#/").split("/"):
        target = target[step]
    return _is_valid(value, target)


def _type(value: Any, expected: Any, _schema: Mapping[str, Any]) -> bool:
    return _TYPES[expected](value)


def _enum(value: Any, expected: list[Any], _schema: Mapping[str, Any]) -> bool:
    return any(type(value) is type(choice) and value == choice for choice in expected)


def _table_members(value: Any, schema: Mapping[str, Any], keyword: str) -> Iterator[bool]:
    """Whether the members of a table conform; `keyword` selects which."""
    properties = schema.get("properties", {})
    for name, item in value.items():
        if (name in properties) is (keyword == "properties"):
            expected = properties[name] if name in properties else schema[keyword]
            yield expected if isinstance(expected, bool) else _is_valid(item, expected)


def _items(value: Any, expected: Mapping[str, Any], _schema: Mapping[str, Any]) -> bool:
    return not isinstance(value, list) or all(_is_valid(item, expected) for item in value)


def _unique(value: Any, expected: bool, _schema: Mapping[str, Any]) -> bool:
    return (
        not expected
        or not isinstance(value, list)
        or all(item not in value[:index] for index, item in enumerate(value))
    )


def _required(value: Any, expected: list[str], _schema: Mapping[str, Any]) -> bool:
    return not isinstance(value, dict) or all(name in value for name in expected)


def _dependent(value: Any, expected: Mapping[str, list[str]], schema: Mapping[str, Any]) -> bool:
    return not isinstance(value, dict) or all(
        _required(value, expected[name], schema) for name in expected if name in value
    )


_ANNOTATIONS: Final = {"$schema", "$id", "$defs", "title", "description", "default"}
_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "boolean": lambda value: isinstance(value, bool),
    "integer": is_integer,
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_KEYWORDS: Final[Mapping[str, Callable[[Any, Any, Mapping[str, Any]], bool]]] = {
    "$ref": _reference,
    "type": _type,
    "enum": _enum,
    "const": lambda value, expected, schema: _enum(value, [expected], schema),
    "pattern": lambda value, expected, _: (
        not isinstance(value, str) or compiled(expected).search(value) is not None
    ),
    "minimum": lambda value, expected, _: not is_number(value) or value >= expected,
    "maximum": lambda value, expected, _: not is_number(value) or value <= expected,
    "minItems": lambda value, expected, _: not isinstance(value, list) or len(value) >= expected,
    "uniqueItems": _unique,
    "items": _items,
    "properties": lambda value, _, schema: (
        not isinstance(value, dict) or all(_table_members(value, schema, "properties"))
    ),
    "additionalProperties": lambda value, _, schema: (
        not isinstance(value, dict) or all(_table_members(value, schema, "additionalProperties"))
    ),
    "propertyNames": lambda value, expected, _: (
        not isinstance(value, dict) or all(_is_valid(name, expected) for name in value)
    ),
    "required": _required,
    "dependentRequired": _dependent,
}
