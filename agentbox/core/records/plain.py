"""Converts records to plain data and back, by their annotations. Standard library only: Stage A of
the boot imports this.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """The fields of a record; empty for other types."""
    return tuple(item.name for item in fields(kind)) if is_dataclass(kind) else ()


def to_plain(value: Any) -> Any:
    """As `dataclasses.asdict`, which also copies every text and takes four times as long."""
    kind: Any = type(value)
    if kind in (str, int, bool, float, NoneType):
        return value
    if names := _field_names(kind):
        return {name: to_plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return type(value)(to_plain(item) for item in value)
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def build(kind: Any, data: Any, path: str) -> Any:
    if is_dataclass(kind):
        return _build_record(kind, data, path)
    origin, args = get_origin(kind), get_args(kind)
    if origin is UnionType and args[1:] == (NoneType,):
        return None if data is None else build(args[0], data, path)
    if origin is tuple:
        return tuple(build(args[0], item, f"{path}[{i}]") for i, item in enumerate(data))
    if origin is not None and is_mapping_type(origin):
        return {key: build(args[1], item, f"{path}.{key}") for key, item in data.items()}
    return data


def is_mapping_type(origin: Any) -> bool:
    """True for `Mapping[...]` annotations."""
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _build_record(kind: Any, data: Any, path: str) -> Any:
    hints = get_type_hints(kind)
    names = {f.name for f in fields(kind)}
    if unknown := sorted(set(data) - names):
        raise ValueError(f"{path}: unknown field {unknown[0]}")
    values = {name: build(hints[name], value, f"{path}.{name}") for name, value in data.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{path}: {error}") from error
