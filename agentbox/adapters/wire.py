"""Records and their wire form: one implementation for every record of every slot, and JSON Schemas made from the records.

A record is a frozen dataclass with slots and keyword-only fields. On the wire it is a JSON object: times are RFC 3339
with milliseconds and `Z`, bytes are base64, tuples are arrays.
"""

import base64
import binascii
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from agentbox import clock
from agentbox.adapters.errors import ValidationError

T = TypeVar("T")

if TYPE_CHECKING:
    Scalar: TypeAlias = bool | int | float | str | None
    JsonValue: TypeAlias = Scalar | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
    JsonObj: TypeAlias = Mapping[str, JsonValue]
else:

    class Scalar:
        """Any JSON value that holds no other."""

    class JsonValue:
        """Any JSON value."""

    class JsonObj:
        """A JSON object."""


EMPTY: Mapping[str, Any] = types.MappingProxyType({})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """The decorator of every record: frozen, slots, keyword-only."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


class Record:
    """Gives a record its wire form."""

    __slots__ = ()

    def to_wire(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {f.name: to_wire(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_wire(cls, data: Any) -> Self:
        """The inverse of `to_wire`. Raises ValidationError with the pointer of the first value that does not fit."""
        return from_wire(cls, data)


def to_wire(value: Any) -> Any:
    """The wire form of a record, or of what a field of one may hold."""
    if isinstance(value, Record):
        return value.to_wire()
    if isinstance(value, datetime):
        return clock.to_wire(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {key: to_wire(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_wire(item) for item in value]
    return value


def from_wire(kind: type[T], data: Any) -> T:
    """A value of the annotation `kind` (a record, `Page[Bead]`, `tuple[str, ...]`, ...) from plain JSON data."""
    built: T = _read(kind, data, "")
    return built


def refuse(pointer: str, detail: str) -> ValidationError:
    """A ValidationError about one value."""
    where = pointer or "the document"
    return ValidationError(f"cannot read {where}: {detail}", errors=[{"pointer": pointer, "detail": detail}])


@cache
def hints_of(kind: type) -> Mapping[str, Any]:
    """Field name -> annotation, of a record class."""
    return get_type_hints(kind)


def _read(kind: Any, data: Any, at: str) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _read_union(args, data, at)
    if origin is Literal:
        if data not in args or isinstance(data, bool):
            raise refuse(at, f"must be one of {', '.join(map(str, args))}")
        return data
    if origin is tuple:
        return _read_tuple(args, data, at)
    if is_dataclass(origin or kind):
        return _read_record(origin or kind, args, data, at)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _read(args[1], item, f"{at}/{_escape(key)}") for key, item in _object(data, at).items()}
    return _read_scalar(kind, data, at)


def _read_union(args: tuple[Any, ...], data: Any, at: str) -> Any:
    if data is None and type(None) in args:
        return None
    rest = [arg for arg in args if arg is not type(None)]
    for arg in rest[:-1]:
        try:
            return _read(arg, data, at)
        except ValidationError:
            continue
    return _read(rest[-1], data, at)


def _read_tuple(args: tuple[Any, ...], data: Any, at: str) -> tuple[Any, ...]:
    if not isinstance(data, (list, tuple)):
        raise refuse(at, "must be an array")
    return tuple(_read(args[0], item, f"{at}/{index}") for index, item in enumerate(data))


def _read_record(kind: Any, args: tuple[Any, ...], data: Any, at: str) -> Any:
    document = _object(data, at)
    known = {f.name: f for f in fields(kind)}
    for name in document:
        if name not in known:
            raise refuse(f"{at}/{_escape(name)}", "is unknown")
    for name, one in known.items():
        if name not in document and one.default is MISSING and one.default_factory is MISSING:
            raise refuse(f"{at}/{name}", "is missing")
    hints = {name: _bind(hint, kind, args) for name, hint in hints_of(kind).items()}
    return kind(**{name: _read(hints[name], item, f"{at}/{name}") for name, item in document.items()})


def _bind(hint: Any, kind: Any, args: tuple[Any, ...]) -> Any:
    """Puts the arguments of `Page[Bead]` in place of the type variables of `Page`."""
    if not args:
        return hint
    table = dict(zip(kind.__parameters__, args, strict=True))
    if isinstance(hint, TypeVar):
        return table[hint]
    if get_origin(hint) is tuple:
        return tuple[table.get(get_args(hint)[0], get_args(hint)[0]), ...]  # type: ignore[misc]
    return hint


def _read_scalar(kind: Any, data: Any, at: str) -> Any:
    if kind is datetime:
        return _read_time(data, at)
    if kind is bytes:
        return _read_bytes(data, at)
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return _float(data, at)
    if kind is int and isinstance(data, float) and data.is_integer():
        return int(data)  # 5.0 is an integer, to JSON Schema as to RFC 8259
    accepted: dict[Any, tuple[type | tuple[type, ...], str]] = {
        str: (str, "a string"), int: (int, "an integer"), float: (float, "a number"), bool: (bool, "true or false"),
        JsonObj: (Mapping, "an object"), Scalar: ((str, int, float, bool, type(None)), "a scalar"),
    }  # fmt: skip
    if kind in accepted:
        wanted, name = accepted[kind]
        if not isinstance(data, wanted) or (kind in (int, float) and isinstance(data, bool)):
            raise refuse(at, f"must be {name}")
    return data


def _float(data: int, at: str) -> float:
    try:
        return float(data)
    except OverflowError as error:
        raise refuse(at, "is too large a number") from error


def _read_time(data: Any, at: str) -> datetime:
    try:
        return clock.from_wire(data)
    except (ValueError, TypeError) as error:
        raise refuse(at, "must be an RFC 3339 time with an offset") from error


def _read_bytes(data: Any, at: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise refuse(at, "must be base64") from error


def _object(data: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise refuse(at, "must be an object")
    return data


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
