"""JSON Schemas (2020-12) of a slot's records, made from the records themselves."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from typing import Any, Literal, Union, get_args, get_origin

from agentbox.adapters.wire import JsonObj, JsonValue, Record, Scalar, hints_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    type(None): {"type": "null"}, datetime: {"type": "string", "format": "date-time"},
    bytes: {"type": "string", "contentEncoding": "base64"}, Any: {}, JsonValue: {}, JsonObj: {"type": "object"},
    Scalar: {"type": ["string", "number", "boolean", "null"]},
}  # fmt: skip


def schemas(slot: str, records: Mapping[str, type[Record]]) -> dict[str, Any]:
    """One document with every record of a slot under `$defs`."""
    return {
        "$schema": DRAFT,
        "$id": f"urn:agentbox:contract:{slot}",
        "$defs": {name: schema_of(kind) for name, kind in sorted(records.items())},
    }


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema of an annotation; a record is an object that is closed."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(arg) for arg in args]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(args[0])}
    if is_dataclass(origin or kind):
        return _object(origin or kind, args)
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(args[1])}
    return dict(_PLAIN[kind])


def _object(kind: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    bound = dict(zip(getattr(kind, "__parameters__", ()), args, strict=False))
    hints = {name: bound.get(hint, hint) for name, hint in hints_of(kind).items()}
    if bound:
        hints = {name: _bound(hint, bound) for name, hint in hints.items()}
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    return {
        "type": "object",
        "properties": {name: schema_of(hint) for name, hint in hints.items()},
        "required": needed,
        "additionalProperties": False,
    }


def _bound(hint: Any, bound: Mapping[Any, Any]) -> Any:
    """A tuple of a type variable, with the type in its place; anything else as it is."""
    if get_origin(hint) is tuple and get_args(hint)[0] in bound:
        item = bound[get_args(hint)[0]]
        return types.GenericAlias(tuple, (item, ...))
    return hint
