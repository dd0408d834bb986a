"""Records as the wire has them: members with their JSON types.

A record is named by the place where it is met first on its way out: `HTTP close_bead response`,
`file boot.json`, and below that `HTTP list_agents response.items[]`. Of several places the
shallowest one counts, then the first by name. So a Python class may be renamed and nothing here
changes. A record that no listed place reaches is named by its class: `class Report`.
"""

import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import PurePath
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from frozen import sources

Place = tuple[str, Any]  # where a record leaves the program, and its annotation
_SCALARS: Final[Mapping[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    datetime: "time",
    bytes: "base64",
    dict: "object",
    **sources.JSON_TYPES,
}


class Records:
    """All records that are reachable from some places, each once."""

    def __init__(self, places: Iterable[Place], others: Iterable[type] = ()) -> None:
        """`others` are classes that cross a border somewhere; those that no place reaches get the
        name of their class."""
        self._names: dict[Any, str] = {}
        self._name(sorted(places, key=lambda place: place[0]))
        reached = {get_origin(kind) or kind for kind in self._names}
        rest = [kind for kind in others if kind not in reached]
        for kind in rest:
            if [other.__name__ for other in rest].count(kind.__name__) > 1:
                raise ValueError(
                    f"two records are called {kind.__name__}: give each a place in sources.py"
                )
        self._name(sorted((f"class {kind.__name__}", kind) for kind in rest))

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The classes, generic ones with their arguments."""
        return tuple(self._names)

    def facts(self) -> dict[str, str]:
        """`<record>.<member>` -> its type; a member that may be left out has `?` behind it."""
        found: dict[str, str] = {}
        for kind, name in self._names.items():
            for item, hint in _members(kind):
                mark = "" if item.default is MISSING and item.default_factory is MISSING else "?"
                found[f"{name}.{item.name}{mark}"] = self.text(hint)
        return found

    def text(self, hint: Any) -> str:
        """The type of an annotation, as the wire has it."""
        origin, args = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self.text(args[0])
        if origin is Literal:
            return " | ".join(
                sorted(f'"{value}"' if isinstance(value, str) else str(value) for value in args)
            )
        if origin in (Union, types.UnionType):
            return " | ".join(dict.fromkeys(self.text(arg) for arg in args))
        if (kind := _record_of(hint)) is not None:
            return f"<{self._names[kind]}>"
        if _is_array(origin or hint):
            return f"[{', '.join(dict.fromkeys(self.text(arg) for arg in args if arg is not ...))}]"
        if _is_mapping(origin):
            return f"{{{self.text(args[-1])}}}"
        return _scalar(hint)

    def _name(self, places: Iterable[Place]) -> None:
        level = list(places)
        while level:
            deeper: list[Place] = []
            for place, hint in level:
                for at, kind in _records_in(hint, place):
                    if kind not in self._names:
                        self._names[kind] = at
                        deeper += [(f"{at}.{item.name}", below) for item, below in _members(kind)]
            level = sorted(deeper, key=lambda one: one[0])


def subclasses(root: type) -> Iterator[type]:
    """All below it that are records themselves, of modules that are imported."""
    children: list[type] = root.__subclasses__()
    for kind in children:
        found = getattr(sys.modules[kind.__module__], kind.__name__, None)
        if (
            found is kind and is_dataclass(kind) and sources.is_product(kind.__module__)
        ):  # slots made a second class of it
            yield kind
        yield from subclasses(kind)


def flat(document: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """The members of a document, with the types that they have in this instance of it."""
    for name, value in document.items():
        at = f"{place}.{name}" if place else name
        if isinstance(value, Mapping):
            yield from flat(value, at)
        else:
            yield (
                at,
                "array"
                if isinstance(value, Sequence) and not isinstance(value, str)
                else _scalar(type(value)),
            )


def _records_in(hint: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The records that an annotation holds, with the place of each."""
    if _record_of(hint) is not None:
        yield place, _record_of(hint)
        return
    origin, args = get_origin(hint), get_args(hint)
    mark = "[]" if _is_array(origin) else "{}" if _is_mapping(origin) else ""
    for arg in args[:1] if origin is Annotated else args:
        yield from _records_in(arg, place + mark)


def _record_of(hint: Any) -> Any:
    """The annotation itself if it is a record, with the arguments of a generic one."""
    return hint if is_dataclass(get_origin(hint) or hint) else None


def _members(kind: Any) -> list[tuple[Field[Any], Any]]:
    """Fields with their annotations, arguments of a generic record put in."""
    bare = get_origin(kind) or kind
    hints = get_type_hints(bare, include_extras=True)
    given = dict(zip(getattr(bare, "__parameters__", ()), get_args(kind), strict=False))
    return [(item, _bound(hints[item.name], given)) for item in fields(bare)]


def _bound(hint: Any, given: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return given.get(hint, Any)
    if given and get_origin(hint) is tuple:
        return tuple[_bound(get_args(hint)[0], given), ...]  # type: ignore[misc]
    return hint


def _is_array(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple | list | set | frozenset)


def _is_mapping(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Mapping)


def _scalar(hint: Any) -> str:
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return "any"
    if isinstance(hint, type) and issubclass(hint, PurePath | Enum):
        return "string"
    if hint not in _SCALARS:
        raise TypeError(f"no JSON type is known for {hint}")
    return _SCALARS[hint]
