"""Names beside their values instead of as keys: `{"name": "DB_PASSWORD", "value": ...}`,
`["--token", ...]`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NAMES = frozenset(
    {"name", "key", "field", "header", "variable", "var", "param", "parameter", "option", "k"}
)
_VALUES = frozenset({"value", "val", "values", "content", "data", "v"})
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


def is_schema(value: Mapping[str, Any]) -> bool:
    """Whether an object is a JSON Schema: under the name of a secret it describes one, and contains
    none.
    """
    kinds = value.get("type")
    type_names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    return "$ref" in value or any(isinstance(kind, str) and kind in _TYPES for kind in type_names)


def with_names(value: Mapping[str, Any] | Sequence[Any]) -> Iterator[tuple[Any, str]]:
    """Yields each item of an array, or member value, with the name given to it by a sibling; "" if
    none. In an object that is a name member; in an array the preceding option, or the first of a
    pair.
    """
    if isinstance(value, Mapping):
        name = next((v for k, v in value.items() if k.lower() in _NAMES and isinstance(v, str)), "")
        for key, item in value.items():
            yield item, name if key.lower() in _VALUES else ""
        return
    previous = ""
    for index, item in enumerate(value):
        is_paired = previous.startswith("-") or (len(value) == 2 and index == 1)
        yield item, previous if is_paired else ""
        previous = item if isinstance(item, str) else ""
