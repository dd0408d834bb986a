"""The JSON Schema of a manifest, generated from the tables. `python -m
agentbox.manifest.schema.generator` writes the published file, one line a key, which editors read
from a checkout.
"""

import json
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.declarations.key_path import split_names
from agentbox.manifest.declarations.specs import (
    KeySpec,
    MapSpec,
    TableSpec,
    item_spec,
    manifest_spec,
)
from agentbox.manifest.types import Size, SizeText

PUBLISHED: Final = CHECKOUT / "schema/agentbox.schema.json"
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string"}


@cache
def manifest_schema() -> dict[str, Any]:
    """The schema in one document. Do not modify the result. Types are inlined: some language
    servers ignore annotations beside a reference.
    """
    definitions: dict[str, Any] = {}
    root = _table_schema(manifest_spec(), definitions)
    for name, table in root["properties"].items():
        entries = "additionalProperties" in table and table["additionalProperties"]
        title = f"[{name}.<name>]" if entries else f"[{name}]"
        root["properties"][name] = {"title": title, **table}
    del root["description"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:agentbox:schema:root",
        "title": "agentbox.toml",
        **root,
        "$defs": definitions,
    }


def properties() -> Iterator[tuple[str, dict[str, Any]]]:
    """All key paths with their schemas, in order, including tables. Map entries have their names if
    the schema has them, else `*`.
    """
    for name, inner in manifest_schema()["properties"].items():
        yield from _walk(name, inner)


def schema_at(path: str) -> dict[str, Any] | None:
    """The schema of a real key path, with any entry names; None if it does not exist."""
    node: Any = manifest_schema()
    for name in split_names(path):
        node = resolve_reference(node)
        node = node.get("properties", {}).get(name) or node.get("additionalProperties")
        if not isinstance(node, dict):
            return None
    return resolve_reference(node)


def resolve_reference(inner: dict[str, Any]) -> dict[str, Any]:
    """Follows the `$ref` of a schema; its own annotations take precedence."""
    if "$ref" not in inner:
        return inner
    target = manifest_schema()["$defs"][inner["$ref"].removeprefix("#/$defs/")]
    return {**target, **{word: value for word, value in inner.items() if word != "$ref"}}


def type_schema(hint: Any) -> dict[str, Any]:
    """The schema of an annotation."""
    if get_origin(hint) is Annotated:
        base, *marks = get_args(hint)
        words = type_schema(base)
        for mark in marks:
            words |= mark.keywords()
        title = {"title": words.pop("title")} if "title" in words else {}
        doc = {"description": words.pop("description")} if "description" in words else {}
        return {**title, **words, **doc}
    if get_origin(hint) is Literal:
        choices = list(get_args(hint))
        if choices == [1]:
            return {"type": "integer", "const": 1}
        return {"type": "string", "enum": choices}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": type_schema(get_args(hint)[0])}
    if hint is Size:
        return type_schema(SizeText)
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return _table_schema(item_spec(hint), {})
    return {"type": _TYPES[hint]}


def _table_schema(spec: TableSpec, definitions: dict[str, Any]) -> dict[str, Any]:
    """A closed table. Schemas that several names share go to `definitions`."""
    result: dict[str, Any] = {
        "description": spec.doc,
        "type": "object",
        "additionalProperties": False,
    }
    if spec.required:
        result["required"] = spec.required
    result["properties"] = {
        name: _member_schema(member, definitions) for name, member in spec.members.items()
    }
    needs = {
        name: list(member.needs)
        for name, member in spec.members.items()
        if isinstance(member, KeySpec) and member.needs
    }
    return {**result, "dependentRequired": needs} if needs else result


def _member_schema(
    member: KeySpec | TableSpec | MapSpec, definitions: dict[str, Any]
) -> dict[str, Any]:
    if isinstance(member, TableSpec):
        return _table_schema(member, definitions)
    if isinstance(member, KeySpec):
        return _key_schema(member)
    entry = _table_schema(member.entry, definitions)
    table = {"description": member.doc, "type": "object"}
    if not member.names:
        return {
            **table,
            "propertyNames": type_schema(member.name_hint),
            "additionalProperties": entry,
        }
    name = member.path.rpartition(".")[2]
    definitions[name] = entry
    entries = {
        key: {"$ref": f"#/$defs/{name}", "description": doc, "x-agentbox-apply": member.apply}
        for key, doc in member.names.items()
    }
    return {**table, "additionalProperties": False, "properties": entries}


def _key_schema(spec: KeySpec) -> dict[str, Any]:
    result = {**type_schema(spec.hint), "description": spec.doc}
    if not (spec.required or spec.inherits):
        result["default"] = spec.default
    result["x-agentbox-apply"] = spec.apply
    if spec.inherits:
        result["x-agentbox-inherits"] = spec.inherits
    if spec.unit:
        result["x-agentbox-unit"] = spec.unit
    if spec.when:
        table = spec.path.rpartition(".")[0]
        result["x-agentbox-when"] = {
            item.key.removeprefix(table) if item.key.rpartition(".")[0] == table else item.key: {
                "not": list(item.values)
            }
            if item.negated
            else list(item.values)
            for item in spec.when
        }
    return result


def _walk(path: str, inner: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    full = resolve_reference(inner)
    yield path, full
    for name, member in full.get("properties", {}).items():
        yield from _walk(f"{path}.{name}", member)
    if isinstance(entry := full.get("additionalProperties"), dict):
        yield from _walk(f"{path}.*", entry)


def schema_text() -> str:
    """The required content of the published file."""
    return f"{_text(manifest_schema(), '')}\n"


def _text(value: Any, margin: str, *, is_table: bool = False) -> str:
    """JSON with one line for each key."""
    if not isinstance(value, dict) or not (is_table or _has_properties(value)):
        return json.dumps(value, ensure_ascii=False)
    inner = f"{margin} "
    lines = (
        f"{inner}{json.dumps(name)}: {_text(item, inner, is_table=name == 'properties')}"
        for name, item in value.items()
    )
    return "{\n" + ",\n".join(lines) + f"\n{margin}}}"


def _has_properties(value: Any) -> bool:
    return isinstance(value, dict) and (
        "properties" in value or any(map(_has_properties, value.values()))
    )


if __name__ == "__main__":
    PUBLISHED.write_text(schema_text())
