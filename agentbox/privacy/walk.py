"""Visits the texts that a pointer names inside the arguments of a call, and builds the arguments anew around them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from typing import Any

Visit = Callable[[str, str], str]  # (text, name of the member it is under) -> text


def rewrite(value: Any, pointer: str, visit: Visit) -> Any:
    """The value with every string at `pointer` visited. `*` is each item of an array, `/**` each string below.

    Bytes that are UTF-8 without NUL are text; other bytes pass. A pointer that leads nowhere changes nothing.
    """
    return _at(value, pointer.split("/")[1:], visit, "")


def _at(value: Any, path: list[str], visit: Visit, key: str) -> Any:
    if value is None:
        return None
    if not path or path[0] == "**":
        return _below(value, visit, key) if path else _text(value, visit, key)
    if isinstance(value, bytes):
        return _in_json(value, path, visit, key)
    head, rest = path[0], path[1:]
    if head == "*":
        return tuple(_at(item, rest, visit, key) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        new = _at(getattr(value, head), rest, visit, head)
        return value if new is getattr(value, head) else replace(value, **{head: new})
    if isinstance(value, Mapping) and head in value:
        return {**value, head: _at(value[head], rest, visit, head)}
    return value


def _in_json(value: bytes, path: list[str], visit: Visit, key: str) -> bytes:
    """Below bytes that are JSON; others pass, for whoever reads them to refuse. Equal when nothing was found."""
    try:
        given = json.loads(value)
    except ValueError:
        return value
    fits = isinstance(given, list) if path[0] == "*" else isinstance(given, Mapping)
    new = _at(given, path, visit, key) if fits else given
    return value if new == given or list(new) == given else json.dumps(new).encode()


def _below(value: Any, visit: Visit, key: str) -> Any:
    if isinstance(value, Mapping):
        return _members(value, visit)
    if isinstance(value, list | tuple):
        return type(value)(_below(item, visit, key) for item in value)
    return _text(value, visit, key)


def _members(value: Mapping[str, Any], visit: Visit) -> dict[str, Any]:
    """Names are texts too. Two that become equal are told apart by a number, so that no value is lost."""
    found: dict[str, Any] = {}
    for name, item in value.items():
        new = unique = visit(name, "")
        number = 1
        while unique in found:
            number += 1
            unique = f"{new} {number}"
        found[unique] = _below(item, visit, name)
    return found


def _text(value: Any, visit: Visit, key: str) -> Any:
    if isinstance(value, str):
        return visit(value, key)
    if isinstance(value, bytes):
        text = _decoded(value)
        return value if text is None else visit(text, key).encode()
    return value


def _decoded(value: bytes) -> str | None:
    if b"\0" in value:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
