"""Visits the values that a pointer names inside the arguments of a call, and builds the arguments anew around them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from agentbox.policy.redaction.named_values import is_schema, named_by

Visit = Callable[[str, str], str]  # (text, name of the member it is under) -> text
WHOLE = 1 << 20  # bytes; a longer body is a text, whatever it is


def _kept(number: float, _key: str) -> Any:
    return number


def _never(_name: str) -> bool:
    return False


def rewrite(
    value: Any, pointer: str, visit: Visit, number: Callable[[float, str], Any] = _kept, holds: Callable[[str], bool] = _never
) -> Any:  # fmt: skip
    """The value with every string at `pointer` visited. `*` is each item of an array, `/**` each string below.

    `number` visits numbers below `/**`. What is below a member whose name `holds`, at any depth, is visited under that name.
    Bytes that are JSON are looked into; others that are UTF-8 without NUL are text; the rest passes. A pointer that leads
    nowhere changes nothing.
    """
    return _Walk(visit, number, holds).at(value, pointer.split("/")[1:], "")


@dataclass(frozen=True)
class _Walk:
    visit: Visit
    number: Callable[[float, str], Any]
    holds: Callable[[str], bool]

    def at(self, value: Any, path: Sequence[str], key: str) -> Any:
        if value is None:
            return None
        if not path or path[0] == "**":
            return self._below(value, key) if path else self._text(value, key)
        if isinstance(value, bytes):
            return self._in_json(value, path, key)
        head, rest = path[0], path[1:]
        if head == "*":
            return tuple(self.at(item, rest, key) for item in value)
        if is_dataclass(value) and not isinstance(value, type):
            new = self.at(getattr(value, head), rest, head)
            return value if new is getattr(value, head) else replace(value, **{head: new})
        if isinstance(value, Mapping) and head in value:
            return {**value, head: self.at(value[head], rest, _patched(value) if head == "value" else head)}
        return value

    def _in_json(self, value: bytes, path: Sequence[str], key: str) -> bytes:
        """Below bytes that are JSON; others pass, for whoever reads them to refuse. Equal when nothing was found."""
        try:
            given = json.loads(value)
        except ValueError:
            return value
        fits = isinstance(given, list) if path[0] == "*" else isinstance(given, Mapping)
        new = self.at(given, path, key) if fits else given
        return value if new == given or list(new) == given else json.dumps(new).encode()

    def _below(self, value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            return self._members(value, key)
        if isinstance(value, list | tuple):
            return type(value)(self._below(item, self._under(key, name)) for item, name in named_by(value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.number(value, key)
        return self._text(value, key)

    def _members(self, value: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Names are texts too. Two that become equal are told apart by a number, so that no value is lost."""
        found: dict[str, Any] = {}
        key = "" if is_schema(value) else key
        for name, item, named in _each(value):
            new = unique = self.visit(name, key if self.holds(key) else "")
            number = 1
            while unique in found:
                number += 1
                unique = f"{new} {number}"
            found[unique] = self._below(item, self._under(key, named))
        return found

    def _under(self, key: str, name: str) -> str:
        """The name that counts: of all that a value is under, the outermost that `holds`; else the nearest."""
        return key if not name or self.holds(key) else name

    def _text(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return self.visit(value, key)
        if not isinstance(value, bytes):
            return value
        text = _decoded(value)
        if text is None:
            return value
        found = self._document(text, key)
        return self.visit(text, key).encode() if found is None else value if found == "" else found.encode()

    def _document(self, text: str, key: str) -> str | None:
        """A body that is JSON, written anew where something was found in it, "" where nothing was; None for any other."""
        if len(text) > WHOLE or text.lstrip()[:1] not in ("{", "["):
            return None
        try:
            given = json.loads(text, parse_constant=_refused, object_pairs_hook=_once)
            new = self._below(given, key)
            return "" if new == given else json.dumps(new, ensure_ascii=False, allow_nan=False)
        except (ValueError, RecursionError):
            return None


def _each(value: Mapping[str, Any]) -> Sequence[tuple[str, Any, str]]:
    """Each member, and the name that its value goes by: its own, or the one that the member beside it gives."""
    return [
        (name, item, other or name) for (name, item), (_, other) in zip(value.items(), named_by(value), strict=True)
    ]


def _patched(operation: Mapping[str, Any]) -> str:
    """The member that an operation of a JSON Patch writes to."""
    path = operation.get("path")
    last = path.rpartition("/")[2] if isinstance(path, str) else ""
    return last.replace("~1", "/").replace("~0", "~")


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Of a name that is given twice one value would be lost: such a body is a text."""
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("a name is given twice")
    return found


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _decoded(value: bytes) -> str | None:
    if b"\0" in value:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
