"""A writer for the YAML that compose and Kubernetes need: block style, two spaces, text quoted unless plainly a word.

The image holds no YAML library, and a general one would let the style drift. Numbers, booleans and null are the only
plain scalars that are not text; whatever YAML 1.1 or 1.2 would read as one of them, or as syntax, is quoted.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z/$][A-Za-z0-9_./$-]*")
_WORDS_OF_YAML = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n"])

Quoted = type("Quoted", (str,), {"__doc__": "Text that is written in quotes even where it need not be."})


def dump(data: Mapping[str, Any]) -> str:
    """The document, ending in a line feed. Keys keep their order. TypeError for anything but plain data."""
    return "\n".join(_mapping(data, "")) + "\n"


def _mapping(data: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, value in data.items():
        lines += _entry(f"{indent}{_scalar(key)}:", value, indent + "  ")
    return lines


def _sequence(data: Sequence[Any], indent: str) -> list[str]:
    lines: list[str] = []
    for value in data:
        if isinstance(value, Mapping) and value:
            first, *rest = _mapping(value, indent + "  ")
            lines += [f"{indent}- {first.lstrip()}", *rest]
        else:
            lines += _entry(f"{indent}-", value, indent + "  ")
    return lines


def _entry(head: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, Mapping):
        return [head, *_mapping(value, indent)] if value else [f"{head} {{}}"]
    if isinstance(value, list | tuple):
        return [head, *_sequence(value, indent)] if value else [f"{head} []"]
    return [f"{head} {_scalar(value)}"]


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | float):
        return json.dumps(value, allow_nan=False)
    if not isinstance(value, str):
        raise TypeError(f"no YAML for {type(value).__name__}")
    plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML and not isinstance(value, Quoted)
    return value if plain else _quoted(value)


def _quoted(value: str) -> str:
    if value.isprintable() and "\\" not in value and "'" not in value:
        return f"'{value}'"
    return '"' + "".join(_escaped(char) for char in value) + '"'


def _escaped(char: str) -> str:
    """As a character of a double-quoted scalar (YAML 1.2, 5.7): unlike JSON, a code point is never split in two."""
    if char in '"\\':
        return f"\\{char}"
    return char if " " <= char <= "~" else f"\\U{ord(char):08x}"
