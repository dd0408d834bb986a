"""A YAML writer for compose and Kubernetes: block style, two spaces, text quoted unless it is a
plain word. The image has no YAML library, and this keeps the style fixed. Numbers, booleans and
null are the only plain scalars that are not text; everything that YAML 1.1 or 1.2 could read as one
of them, or as syntax, is quoted.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z/$][A-Za-z0-9_./$-]*")
_YAML_KEYWORDS = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n"])


class Quoted(str):
    """Text that is always quoted."""


class Block(str):
    """Text written as a literal block if that preserves it."""


def dump(data: Mapping[str, Any]) -> str:
    """The document, ending in a line feed. Keys keep their order. Raises TypeError for anything but
    plain data.
    """
    return "\n".join(_mapping(data, "")) + "\n"


def documents(items: Iterable[Mapping[str, Any]]) -> str:
    """Several documents in one stream, each starting with `---`."""
    return "".join(f"---\n{dump(data)}" for data in items)


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
    if isinstance(value, Block) and _is_literal_block(value):
        lines = value.removesuffix("\n").split("\n")
        return [f"{head} |", *(f"{indent}{line}" if line else "" for line in lines)]
    return [f"{head} {_scalar(value)}"]


def _is_literal_block(text: str) -> bool:
    """Whether a literal block preserves the text: it ends in one line feed, does not begin with
    white space, and contains no other YAML line break (1.2, 8.1.1 and 5.4).
    """
    is_simple = text.endswith("\n") and not text.endswith("\n\n") and not text[0].isspace()
    return is_simple and all(line.isprintable() for line in text.split("\n"))


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | float):
        return json.dumps(value, allow_nan=False)
    if not isinstance(value, str):
        raise TypeError(f"cannot write as YAML: {type(value).__name__}")
    is_plain = (
        _PLAIN.fullmatch(value)
        and value.lower() not in _YAML_KEYWORDS
        and not isinstance(value, Quoted)
    )
    return value if is_plain else _quoted(value)


def _quoted(value: str) -> str:
    if value.isprintable() and "\\" not in value and "'" not in value:
        return f"'{value}'"
    return '"' + "".join(_escaped(char) for char in value) + '"'


def _escaped(char: str) -> str:
    """A character in a double-quoted scalar (YAML 1.2, 5.7): unlike in JSON, a code point is never
    split.
    """
    if char in '"\\':
        return f"\\{char}"
    return char if " " <= char <= "~" else f"\\U{ord(char):08x}"
