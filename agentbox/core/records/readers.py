"""Decodes plain JSON data by annotation. The reader of an annotation is built once: a list of a
hundred agents has 8,000 values, and decoding blocks the event loop."""

import base64
import binascii
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from agentbox.core import clock
from agentbox.core.slot_errors import ValidationError

if TYPE_CHECKING:
    Scalar: TypeAlias = bool | int | float | str | None
    JsonValue: TypeAlias = Scalar | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
    JsonObj: TypeAlias = Mapping[str, JsonValue]
else:

    class Scalar:
        """Any JSON value that is not a container."""

    class JsonValue:
        """Any JSON value."""

    class JsonObj:
        """A JSON object."""


def invalid_value(pointer: str, detail: str) -> ValidationError:
    """A ValidationError about one value."""
    location = pointer or "the document"
    return ValidationError(
        f"cannot read {location}: {detail}", errors=[{"pointer": pointer, "detail": detail}]
    )


@cache
def field_hints(kind: type) -> Mapping[str, Any]:
    """Field name -> annotation of a record class."""
    return get_type_hints(kind)


_Location: TypeAlias = tuple[
    Any, ...
]  # location of a value: () for the document, else (location of the parent, key)
_Reader: TypeAlias = Callable[[Any, _Location], Any]


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The fields of a record class, in order."""
    return tuple(f.name for f in fields(kind))


@cache
def reader_of(kind: Any, lenient: bool = False) -> _Reader:
    """The function that reads values of an annotation at a location; `()`: the document. A lenient
    one ignores unknown members."""
    return _reader(kind, lenient)


def _reader(kind: Any, lenient: bool) -> _Reader:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _union(args, lenient)
    if origin is Literal:
        return _literal(args)
    if origin is tuple:
        return _tuple(_reader(args[0], lenient))
    if is_dataclass(origin or kind):
        return _record(origin or kind, args, lenient)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_reader(args[1], lenient))
    return _scalar(kind)


def _union(args: tuple[Any, ...], lenient: bool) -> _Reader:
    optional = type(None) in args
    *first, last = [_reader(arg, lenient) for arg in args if arg is not type(None)]

    def read(data: Any, location: _Location) -> Any:
        if data is None and optional:
            return None
        for reader in first:
            try:
                return reader(data, location)
            except ValidationError:
                continue
        return last(data, location)

    return read


def _literal(args: tuple[Any, ...]) -> _Reader:
    def read(data: Any, location: _Location) -> Any:
        if data not in args or isinstance(data, bool):
            raise _error_at(location, f"must be one of {', '.join(map(str, args))}")
        return data

    return read


def _tuple(item: _Reader) -> _Reader:
    def read(data: Any, location: _Location) -> tuple[Any, ...]:
        if not isinstance(data, (list, tuple)):
            raise _error_at(location, "must be an array")
        return tuple([item(element, (location, index)) for index, element in enumerate(data)])

    return read


def _mapping(item: _Reader) -> _Reader:
    def read(data: Any, location: _Location) -> dict[str, Any]:
        return {key: item(value, (location, key)) for key, value in _object(data, location).items()}

    return read


@cache
def _record(kind: Any, args: tuple[Any, ...], lenient: bool) -> _Reader:
    required = {
        f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING
    }
    order = field_names(kind)
    names = set(order)
    readers: dict[
        str, _Reader
    ] = {}  # built on first use, so that a record may contain its own type

    def read(data: Any, location: _Location) -> Any:
        document = _object(data, location)
        if not document.keys() <= names:
            if not lenient:
                raise _error_at(
                    (location, next(name for name in document if name not in names)), "is unknown"
                )
            document = {name: item for name, item in document.items() if name in names}
        if not required <= document.keys():
            raise _error_at(
                (
                    location,
                    next(name for name in order if name in required and name not in document),
                ),
                "is missing",
            )
        if not readers:
            readers.update(
                {
                    name: _reader(_bind(hint, kind, args), lenient)
                    for name, hint in field_hints(kind).items()
                }
            )
        return kind(
            **{name: readers[name](item, (location, name)) for name, item in document.items()}
        )

    return read


def _bind(hint: Any, kind: Any, args: tuple[Any, ...]) -> Any:
    """Replaces the type variables of `Page` by the arguments of `Page[Bead]`."""
    if not args:
        return hint
    table = dict(zip(kind.__parameters__, args, strict=True))
    if isinstance(hint, TypeVar):
        return table[hint]
    if get_origin(hint) is tuple:
        return tuple[table.get(get_args(hint)[0], get_args(hint)[0]), ...]  # type: ignore[misc]
    return hint


def _scalar(kind: Any) -> _Reader:
    special: dict[Any, _Reader] = {
        datetime: _read_time,
        bytes: _read_bytes,
        float: _read_float,
        int: _read_int,
    }
    accepted: dict[Any, tuple[type | tuple[type, ...], str]] = {
        str: (str, "a string"),
        bool: (bool, "true or false"),
        JsonObj: (Mapping, "an object"),
        Scalar: ((str, int, float, bool, type(None)), "a scalar"),
    }
    if kind in special:
        return special[kind]
    if kind not in accepted:
        return lambda data, _at: data
    expected, name = accepted[kind]

    def read(data: Any, location: _Location) -> Any:
        if not isinstance(data, expected):
            raise _error_at(location, f"must be {name}")
        return data

    return read


def _read_int(data: Any, location: _Location) -> int:
    if isinstance(data, float) and data.is_integer():
        return int(data)  # 5.0 is an integer in JSON Schema and RFC 8259
    if not isinstance(data, int) or isinstance(data, bool):
        raise _error_at(location, "must be an integer")
    return data


def _read_float(data: Any, location: _Location) -> float:
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        raise _error_at(location, "must be a number")
    try:
        return float(data)
    except OverflowError as error:
        raise _error_at(location, "is too large a number") from error


def _read_time(data: Any, location: _Location) -> datetime:
    try:
        return clock.from_wire(data)
    except (ValueError, TypeError) as error:
        raise _error_at(location, "must be an RFC 3339 time with an offset") from error


def _read_bytes(data: Any, location: _Location) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise _error_at(location, "must be base64") from error


def _object(data: Any, location: _Location) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise _error_at(location, "must be an object")
    return data


def _error_at(location: _Location, detail: str) -> ValidationError:
    """An error with the JSON pointer (RFC 6901) of the value."""
    steps = []
    while location:
        location, key = location
        steps.append(str(key).replace("~", "~0").replace("/", "~1"))
    return invalid_value("".join(f"/{step}" for step in reversed(steps)), detail)
