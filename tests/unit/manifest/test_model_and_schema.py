"""The model and the schema files say the same: keys, types, bounds, enums, defaults, apply classes."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest

from agentbox.core.data_files import schema_dir
from agentbox.manifest.conditions import conditions
from agentbox.manifest.features.slots import slot_class
from agentbox.manifest.keys import generic_path, keys
from agentbox.manifest.model import Model, hints_of, plain
from agentbox.manifest.schema.bundle import (
    BUNDLE,
    bundle,
    bundle_text,
    properties,
    resolve_reference,
)
from agentbox.manifest.tables.policies import SCOPES
from agentbox.manifest.types import (
    APPLY_ORDER,
    MinItems,
    Range,
    Size,
    TextPattern,
    TypeName,
    Unique,
)

ALLOWED_KEYWORDS = {
    "$schema",
    "$id",
    "title",
    "$ref",
    "$defs",
    "type",
    "enum",
    "const",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "minItems",
    "uniqueItems",
    "items",
    "properties",
    "propertyNames",
    "additionalProperties",
    "required",
    "dependentRequired",
    "description",
    "default",
    "x-agentbox-apply",
    "x-agentbox-unit",
    "x-agentbox-when",
    "x-agentbox-inherits",
}
SECTIONS = sorted((schema_dir() / "sections").glob("*.json"))
SCHEMAS = {
    path: schema
    for path, schema in properties()
    if "properties" not in schema and not isinstance(schema.get("additionalProperties"), dict)
}


def words_of(schema: Any, *, names: bool = False) -> Iterator[str]:
    """Every keyword of a schema; below `properties` and `$defs` stand names, not keywords."""
    if isinstance(schema, list):
        for item in schema:
            yield from words_of(item)
    elif isinstance(schema, dict):
        for word, value in schema.items():
            if not names:
                yield word
            if word not in ("default", "x-agentbox-when", "dependentRequired") or names:
                yield from words_of(value, names=word in ("properties", "$defs") and not names)


def expected(hint: Any) -> dict[str, Any]:
    """What the schema of a key with that annotation must say."""
    marks: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        marks = tuple(rest)
    found = _bare(hint)
    for mark in marks:
        if isinstance(mark, Range):
            found |= {"minimum": mark.minimum, "maximum": mark.maximum}
        elif isinstance(mark, TextPattern):
            found |= {"pattern": mark.text}
        elif isinstance(mark, Unique):
            found |= {"uniqueItems": True}
        elif isinstance(mark, MinItems):
            found |= {"minItems": mark.items}
        elif isinstance(mark, TypeName):
            found |= _rules(bundle()["$defs"]["common"]["$defs"][mark.name])
    return found


def _bare(hint: Any) -> dict[str, Any]:
    origin = get_origin(hint)
    if origin is Literal:
        values = list(get_args(hint))
        return (
            {"type": "integer", "const": values[0]}
            if values == [1]
            else {"type": "string", "enum": values}
        )
    if origin is tuple:
        return {"type": "array", "items": expected(get_args(hint)[0])}
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return {
            "type": "object",
            "properties": {name: expected(inner) for name, inner in hints_of(hint).items()},
        }
    if hint is Size:
        return _rules(bundle()["$defs"]["common"]["$defs"]["size"])
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": names[hint]}


def _rules(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a schema that decides what is valid."""
    whole = resolve_reference(dict(schema))
    dropped = ("title", "description", "default", "required", "additionalProperties")
    found = {
        word: value
        for word, value in whole.items()
        if word not in dropped and not word.startswith("x-")
    }
    if "items" in found:
        found["items"] = _rules(found["items"])
    if "properties" in found:
        found["properties"] = {name: _rules(inner) for name, inner in found["properties"].items()}
    return found


def item_of(hint: Any) -> Any:
    """What a list holds; None for what is no list."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return get_args(hint)[0] if get_origin(hint) is tuple else None


def test_same_keys() -> None:
    """Neither side has a key that the other lacks."""
    assert {generic_path(path) for path in SCHEMAS} == set(keys())


@pytest.mark.parametrize("path", SCHEMAS)
def test_same_meaning(path: str) -> None:
    """Type, bounds, enum and pattern; default unless required; apply class; a description."""
    schema, spec = SCHEMAS[path], keys()[generic_path(path)]
    assert _rules(schema) == expected(spec.hint)
    assert schema["x-agentbox-apply"] == spec.apply
    assert schema["x-agentbox-apply"] in APPLY_ORDER
    assert schema["description"].strip()
    assert schema.get("x-agentbox-inherits", "") == spec.inherits
    assert bool(spec.required or spec.inherits) == ("default" not in schema)
    if "default" in schema:
        assert schema["default"] == spec.default
        assert type(schema["default"]) is type(spec.default)


ITEMS = {path: kind for path, spec in keys().items() if is_dataclass(kind := item_of(spec.hint))}


@pytest.mark.parametrize("path", ITEMS)
def test_items_of_lists_have_the_same_defaults(path: str) -> None:
    """The tables inside lists too: required keys, defaults, apply classes; and they are closed."""
    real = path.replace("exceptions.*", "exceptions.desktop")
    schema = resolve_reference(SCHEMAS[real]["items"])
    assert schema["additionalProperties"] is False
    assert schema["required"] == [
        item.name for item in fields(ITEMS[path]) if item.metadata["required"]
    ]
    for item in fields(ITEMS[path]):
        inner = schema["properties"][item.name]
        assert inner["description"].strip()
        assert ("default" in inner) == (item.name not in schema["required"])
        assert inner.get("default", None) == (
            None if item.metadata["required"] else plain(item.default)
        )
        assert inner["x-agentbox-apply"] == item.metadata["apply"]


def test_lists_of_tables_are_found() -> None:
    """Those of the exceptions and one a scope of a policy."""
    assert len(ITEMS) == 3 + len(SCOPES)


def test_maps_take_names_only() -> None:
    """providers, agents and policies: any name, and a closed table under it."""
    maps = {
        path: schema
        for path, schema in properties()
        if isinstance(schema.get("additionalProperties"), dict)
    }
    assert set(maps) == {"providers", "agents", "policies"}
    for schema in maps.values():
        assert schema["propertyNames"] == bundle()["$defs"]["common"]["$defs"]["name"]
        assert resolve_reference(schema["additionalProperties"])["additionalProperties"] is False


def test_an_inherited_key_is_a_key_of_the_same_kind() -> None:
    """Type, bounds and class are those of the key whose value is taken."""
    inherited = {path: spec for path, spec in keys().items() if spec.inherits}
    assert inherited
    for path, spec in inherited.items():
        source = keys()[spec.inherits]
        assert _rules(SCHEMAS[path]) == _rules(SCHEMAS[spec.inherits])
        assert (spec.hint, spec.default, spec.apply) == (source.hint, source.default, source.apply)


def test_tables_of_the_model_are_closed_and_described() -> None:
    """No table takes unknown keys, and each has a description."""
    for path, schema in properties():
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path
            assert schema["description"], path


def test_one_file_a_table() -> None:
    """Schema file, model file and field of the model have one stem."""
    stems = {path.stem for path in SECTIONS} - {"common"}
    names = {item.name for item in fields(Model)}
    assert stems == names == set(bundle()["properties"])
    for name in names:
        hint = hints_of(Model)[name]
        kind = get_args(hint)[1] if get_origin(hint) is Mapping else hint
        assert (
            kind.__module__ == f"agentbox.manifest.tables.{'slots' if name == 'adapters' else name}"
        )


def test_root_holds_references_only() -> None:
    """Identity, closedness, required, and one reference a table."""
    root = json.loads((schema_dir() / "agentbox.schema.json").read_text())
    assert set(root) == {
        "$schema",
        "$id",
        "title",
        "type",
        "additionalProperties",
        "required",
        "properties",
    }
    assert root["required"] == ["meta"]
    assert all(
        value == {"$ref": f"urn:agentbox:schema:{name}"}
        for name, value in root["properties"].items()
    )


@pytest.mark.parametrize("path", SECTIONS, ids=lambda path: path.stem)
def test_only_allowed_keywords(path: Any) -> None:
    """Editors and validators agree on these; another keyword is refused."""
    schema = json.loads(path.read_text())
    assert schema["$id"] == f"urn:agentbox:schema:{path.stem}"
    assert set(words_of(schema)) - ALLOWED_KEYWORDS == set()


def test_the_bundle_is_fresh() -> None:
    """The file for editors equals what the sections say."""
    written = (schema_dir() / BUNDLE).read_text()
    assert written == bundle_text(), "stale: run `python -m agentbox.manifest.schema.bundle`"


def test_the_bundle_has_local_references_only() -> None:
    """An editor needs no second file."""
    assert "urn:agentbox:schema:" not in bundle_text().replace('"urn:agentbox:schema:root"', "")


def test_seconds_and_sizes_carry_their_unit() -> None:
    """Every key that ends in `_seconds` is an integer of seconds; every size is in bytes."""
    for path, schema in SCHEMAS.items():
        if path.endswith("_seconds"):
            assert (schema["type"], schema["x-agentbox-unit"]) == ("integer", "seconds"), path
        if schema.get("title") == "size":
            assert schema["x-agentbox-unit"] == "bytes", path


def test_conditions_name_keys_and_values_that_exist() -> None:
    """A condition on a key that is misspelt, or on a value that it cannot hold, would be dead."""
    assert conditions()
    for path, wanted in conditions().items():
        for item in wanted:
            schema = SCHEMAS[item.key]
            allowed = schema.get("enum", [True, False] if schema["type"] == "boolean" else None)
            assert allowed is not None, path
            assert set(item.values) <= set(allowed), path


@pytest.mark.parametrize("slot", ["beads", "pods", "memory", "events", "orchestrator"])
def test_the_name_of_an_implementation_begins_with_its_class(slot: str) -> None:
    """Local, external or off; each slot has one of each."""
    classes = [slot_class(use) for use in SCHEMAS[f"adapters.{slot}.use"]["enum"]]
    assert sorted(set(classes)) == ["external", "local", "off"]
