"""Records as plain data and back, by their annotations. Standard library only: Stage A of the boot imports this."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a record; none for what is no record."""
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()


def plain(value: Any) -> Any:
    """As `dataclasses.asdict`, which copies every text as well and takes four times as long."""
    kind: Any = type(value)
    if kind in (str, int, bool, float, NoneType):
        return value
    if names := _names(kind):
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return type(value)(plain(item) for item in value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return value


def build(kind: Any, data: Any, where: str) -> Any:
    if is_dataclass(kind):
        return _build_record(kind, data, where)
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(build(args[0], item, f"{where}[{i}]") for i, item in enumerate(data))
    if origin is not None and issubclass_of_mapping(origin):
        return {key: build(args[1], item, f"{where}.{key}") for key, item in data.items()}
    return data


def issubclass_of_mapping(origin: Any) -> bool:
    """True for the `Mapping[...]` annotations above."""
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _build_record(kind: Any, data: Any, where: str) -> Any:
    hints = get_type_hints(kind)
    names = {f.name for f in fields(kind)}
    if unknown := sorted(set(data) - names):
        raise ValueError(f"{where}: unknown field {unknown[0]}")
    values = {name: build(hints[name], value, f"{where}.{name}") for name, value in data.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from error
