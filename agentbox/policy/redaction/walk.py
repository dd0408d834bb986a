"""Visits the values at a pointer in the arguments of a call, and rebuilds the arguments."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from agentbox.policy.redaction.named_values import is_schema, with_names

Visit = Callable[[str, str], str]  # (text, name of the member it is under) -> text
MAX_JSON = 1 << 20  # bytes; a longer body is treated as text


def _unchanged(number: float, _key: str) -> Any:
    return number


def _never(_name: str) -> bool:
    return False


def rewrite(
    value: Any,
    pointer: str,
    visit: Visit,
    number: Callable[[float, str], Any] = _unchanged,
    is_secret: Callable[[str], bool] = _never,
) -> Any:
    """Visits every string at `pointer` and returns the new value. `*` is each item of an array,
    `/**` each string below. `number` visits numbers below `/**`. Values below a member whose name
    `is_secret`, at any depth, are visited with that name. Bytes that are JSON are parsed; other
    UTF-8 without NUL is text; the rest is unchanged. A pointer without target changes nothing.
    """
    return _Rewriter(visit, number, is_secret).walk(value, pointer.split("/")[1:], "")


@dataclass(frozen=True)
class _Rewriter:
    visit: Visit
    number: Callable[[float, str], Any]
    is_secret: Callable[[str], bool]

    def walk(self, value: Any, path: Sequence[str], key: str) -> Any:
        if value is None:
            return None
        if not path or path[0] == "**":
            return self._walk_all(value, key) if path else self._text(value, key)
        if isinstance(value, bytes):
            return self._in_json(value, path, key)
        head, remaining = path[0], path[1:]
        if head == "*":
            return tuple(self.walk(item, remaining, key) for item in value)
        if is_dataclass(value) and not isinstance(value, type):
            new = self.walk(getattr(value, head), remaining, head)
            return value if new is getattr(value, head) else replace(value, **{head: new})
        if isinstance(value, Mapping) and head in value:
            return {
                **value,
                head: self.walk(
                    value[head], remaining, _patched_member(value) if head == "value" else head
                ),
            }
        return value

    def _in_json(self, value: bytes, path: Sequence[str], key: str) -> bytes:
        """Visits bytes that are JSON; others are unchanged, for the consumer to reject. Returns the
        same bytes if nothing was found.
        """
        try:
            document = json.loads(value)
        except ValueError:
            return value
        is_container = (
            isinstance(document, list) if path[0] == "*" else isinstance(document, Mapping)
        )
        new = self.walk(document, path, key) if is_container else document
        return value if new == document or list(new) == document else json.dumps(new).encode()

    def _walk_all(self, value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            return self._members(value, key)
        if isinstance(value, list | tuple):
            return type(value)(
                self._walk_all(item, self._effective_name(key, name))
                for item, name in with_names(value)
            )
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.number(value, key)
        return self._text(value, key)

    def _members(self, value: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Member names are visited too. Equal results get a number, so that no value is lost."""
        members: dict[str, Any] = {}
        key = "" if is_schema(value) else key
        for name, item, value_name in _with_value_names(value):
            new = unique = self.visit(name, key if self.is_secret(key) else "")
            number = 1
            while unique in members:
                number += 1
                unique = f"{new} {number}"
            members[unique] = self._walk_all(item, self._effective_name(key, value_name))
        return members

    def _effective_name(self, key: str, name: str) -> str:
        """The effective name of a value: the outermost secret name above it, else the nearest."""
        return key if not name or self.is_secret(key) else name

    def _text(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return self.visit(value, key)
        if not isinstance(value, bytes):
            return value
        text = _decode(value)
        if text is None:
            return value
        rewritten = self._rewrite_json(text, key)
        return (
            self.visit(text, key).encode()
            if rewritten is None
            else value
            if rewritten == ""
            else rewritten.encode()
        )

    def _rewrite_json(self, text: str, key: str) -> str | None:
        """Rewrites a JSON body: "" if nothing was found, None if it is not JSON."""
        if len(text) > MAX_JSON or text.lstrip()[:1] not in ("{", "["):
            return None
        try:
            document = json.loads(
                text, parse_constant=_reject_constant, object_pairs_hook=_unique_members
            )
            new = self._walk_all(document, key)
            return "" if new == document else json.dumps(new, ensure_ascii=False, allow_nan=False)
        except (ValueError, RecursionError):
            return None


def _with_value_names(value: Mapping[str, Any]) -> Sequence[tuple[str, Any, str]]:
    """Each member with the name of its value: its key, or the one given by a sibling."""
    return [
        (name, item, value_name or name)
        for (name, item), (_, value_name) in zip(value.items(), with_names(value), strict=True)
    ]


def _patched_member(operation: Mapping[str, Any]) -> str:
    """The member that a JSON Patch operation writes."""
    path = operation.get("path")
    last = path.rpartition("/")[2] if isinstance(path, str) else ""
    return last.replace("~1", "/").replace("~0", "~")


def _unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Builds an object. A duplicate name would lose a value: such a body is treated as text."""
    result = dict(members)
    if len(result) != len(members):
        raise ValueError("duplicate name")
    return result


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _decode(value: bytes) -> str | None:
    if b"\0" in value:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
