"""Records and their wire form, for all slots. A record is a frozen dataclass with slots and
keyword-only fields. On the wire it is a JSON object: times are RFC 3339 with milliseconds and `Z`,
bytes are base64, tuples are arrays."""

import base64
import json
import types
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import (
    Any,
    Self,
    TypeVar,
    dataclass_transform,
)

from agentbox.core import clock
from agentbox.core.frozen import frozen_slots
from agentbox.core.records.readers import (
    JsonObj,
    JsonValue,
    Scalar,
    field_hints,
    field_names,
    invalid_value,
    reader_of,
)

__all__ = [
    "EMPTY",
    "JsonObj",
    "JsonValue",
    "Record",
    "Scalar",
    "field_hints",
    "from_wire",
    "invalid_value",
    "record",
    "to_json",
    "to_wire",
]

T = TypeVar("T")

EMPTY: Mapping[str, Any] = types.MappingProxyType({})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """The decorator of all records: frozen, slots, keyword-only."""
    return frozen_slots(cls)


class Record:
    """Adds the wire form to a record."""

    __slots__ = ()

    def to_wire(self) -> dict[str, Any]:
        """Plain JSON data."""
        names = field_names(type(self))  # type: ignore[arg-type]
        return {name: to_wire(getattr(self, name)) for name in names}

    @classmethod
    def from_wire(cls, data: Any) -> Self:
        """The inverse of `to_wire`. Raises ValidationError with the pointer of the first invalid
        value."""
        return from_wire(cls, data)


def to_wire(value: Any) -> Any:
    """The wire form of a record, or of a field value."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: item if type(item) in _PLAIN else to_wire(item) for key, item in value.items()}
    if kind is tuple or kind is list:
        return [to_wire(item) for item in value]
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


def to_json(value: Any, *, ensure_ascii: bool = False) -> str:
    """The wire form as compact JSON. Plain data is not copied."""
    return json.dumps(
        value, separators=(",", ":"), ensure_ascii=ensure_ascii, default=_encode_default
    )


def _encode_default(value: Any) -> Any:
    """Called by the encoder for unknown values; it encodes the contents again."""
    if isinstance(value, Record) and type(value).to_wire is Record.to_wire:
        names = field_names(type(value))  # type: ignore[arg-type]
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (Record, datetime, bytes)):
        return to_wire(value)
    raise TypeError(f"{type(value).__name__} has no wire form")


def from_wire(kind: type[T], data: Any, *, ignore_unknown: bool = False) -> T:
    """Decodes plain JSON data to a value of the annotation `kind` (a record, `Page[Bead]`,
    `tuple[str, ...]`, ...). Unknown members are errors unless ignored."""
    value: T = reader_of(kind, ignore_unknown)(data, ())  # type: ignore[arg-type]
    return value


_PLAIN = frozenset({str, int, float, bool, type(None)})
