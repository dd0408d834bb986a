"""JSON Schemas (2020-12) of records, derived from their annotations."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from agentbox.core.records.bounds import SchemaKeywords
from agentbox.core.records.wire import JsonObj, JsonValue, Scalar, to_wire

Schema = dict[str, Any]
_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_SCALARS: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    bytes: {"type": "string", "contentEncoding": "base64", "pattern": _BASE64},
    type(None): {"type": "null"},
    JsonObj: {"type": "object"},
    JsonValue: {},
    Scalar: {"type": ["string", "number", "boolean", "null"]},
    Any: {},
}


class Schemas:
    """Collects the components that a document refers to."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}

    def schema_of(self, kind: Any) -> Schema:
        """The schema of an annotation; a record becomes a reference to its component."""
        origin, args = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(args[0], args[1:])
        if origin is Literal:
            return {"type": "string", "enum": list(args)}
        if origin in (Union, types.UnionType):
            return self._union(args)
        if origin is tuple:
            return {"type": "array", "items": self.schema_of(args[0])}
        if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.schema_of(args[1])}
        if is_dataclass(origin or kind):
            return self._component(origin or kind, args)
        return dict(_SCALARS[kind])

    def _annotated(self, kind: Any, annotations: tuple[Any, ...]) -> Schema:
        schema = self.schema_of(kind)
        for annotation in annotations:
            schema = (
                {**schema, **annotation.keywords}
                if isinstance(annotation, SchemaKeywords)
                else schema
            )
        return schema

    def _union(self, args: tuple[Any, ...]) -> Schema:
        options = [self.schema_of(arg) for arg in args if arg is not type(None)]
        if type(None) not in args:
            return options[0] if len(options) == 1 else {"anyOf": options}
        if (
            len(options) == 1
            and isinstance(options[0].get("type"), str)
            and "enum" not in options[0]
        ):
            return {**options[0], "type": [options[0]["type"], "null"]}
        return {"anyOf": [*options, {"type": "null"}]}

    def _component(self, kind: Any, args: tuple[Any, ...]) -> Schema:
        name = kind.__name__ + "".join(arg.__name__ for arg in args)
        if name not in self.components:
            self.components[name] = {}  # a record may contain itself
            self.components[name] = self._object(kind, args)
        return {"$ref": f"#/components/schemas/{name}"}

    def _object(self, kind: Any, args: tuple[Any, ...]) -> Schema:
        hints, table = (
            get_type_hints(kind, include_extras=True),
            dict(zip(getattr(kind, "__parameters__", ()), args, strict=False)),
        )
        properties = {
            field.name: self._property(field, _bind(hints[field.name], table))
            for field in fields(kind)
        }
        required = [field.name for field in fields(kind) if _is_required(field)]
        schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            schema["required"] = required
        if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
            schema["description"] = " ".join(kind.__doc__.split())
        return schema

    def _property(self, field: Field[Any], hint: Any) -> Schema:
        schema = self.schema_of(hint)
        if field.default is not MISSING and not is_dataclass(field.default):
            schema["default"] = to_wire(field.default)
        return schema


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _bind(hint: Any, table: Mapping[Any, Any]) -> Any:
    """Replaces type variables of a generic record by its arguments."""
    if hint in table:
        return table[hint]
    if get_origin(hint) is tuple and get_args(hint)[0] in table:
        return tuple[table[get_args(hint)[0]], ...]  # type: ignore[misc]
    return hint
