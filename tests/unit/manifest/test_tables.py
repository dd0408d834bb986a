"""Properties of the tables that no type expresses, and that the published schema equals the tables."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, get_args, get_origin

import pytest
from jsonschema import Draft202012Validator

from agentbox.manifest.declarations.conditions import conditions
from agentbox.manifest.declarations.key import APPLY_ORDER
from agentbox.manifest.keys import generic_path, keys
from agentbox.manifest.model import Model, hints_of
from agentbox.manifest.schema.generator import (
    PUBLISHED,
    manifest_schema,
    properties,
    schema_text,
)
from agentbox.manifest.tables.slots import SLOTS, AdaptersTable, slot_class
from agentbox.manifest.types import types_by_name

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
SCHEMAS = {
    path: schema
    for path, schema in properties()
    if "properties" not in schema and not isinstance(schema.get("additionalProperties"), dict)
}


def schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all schemas in it, those of items and of names too."""
    yield schema
    named = [item for word in ("properties", "$defs") for item in schema.get(word, {}).values()]
    single = [schema.get(word) for word in ("items", "propertyNames", "additionalProperties")]
    for inner in (*named, *single):
        if isinstance(inner, dict):
            yield from schemas(inner)


def test_the_published_schema_is_fresh() -> None:
    """The file for editors equals the tables; it is valid, and has one line per key."""
    text = PUBLISHED.read_text()
    assert text == schema_text(), "stale: run `python -m agentbox.manifest.schema.generator`"
    assert json.loads(text) == manifest_schema()
    Draft202012Validator.check_schema(manifest_schema())
    assert len(text.splitlines()) < 3.1 * len(keys())


def test_the_schema_has_every_key_of_the_model() -> None:
    """Under the paths of the key table; the exceptions by name."""
    assert {generic_path(path) for path in SCHEMAS} == set(keys())


def test_only_allowed_keywords() -> None:
    """Editors and validators agree on these."""
    found = {word for schema in schemas(manifest_schema()) for word in schema}
    assert found <= ALLOWED_KEYWORDS


def test_an_editor_needs_no_second_file() -> None:
    """References are local."""
    names = set(manifest_schema()["$defs"])
    references = {schema["$ref"] for schema in schemas(manifest_schema()) if "$ref" in schema}
    assert references == {f"#/$defs/{name}" for name in names}


def test_every_table_is_closed_and_everything_has_a_text() -> None:
    """Tables accept no unknown key; tables, keys and the items of lists of tables are described."""
    tables = [schema for schema in schemas(manifest_schema()) if "properties" in schema]
    assert len(tables) > 40
    for table in tables:
        assert table["additionalProperties"] is False
        for name, inner in table["properties"].items():
            assert inner["description"].strip(), name
        assert table is manifest_schema() or table["description"].strip()


def test_every_key_has_an_apply_class_and_a_default_unless_it_is_required() -> None:
    """Keys of the tables in lists too."""
    for table in schemas(manifest_schema()):
        for name, inner in table.get("properties", {}).items():
            if "x-agentbox-apply" not in inner:
                assert inner["type"] == "object"
                continue
            assert inner["x-agentbox-apply"] in APPLY_ORDER
            absent = name in table.get("required", ()) or "x-agentbox-inherits" in inner
            assert ("default" in inner) != (absent or "$ref" in inner), name


def test_maps_take_names_only() -> None:
    """providers, agents, MCP servers and policies: any name, prices: patterns of models, headers: names of such, and a
    closed table under it."""
    maps = {
        path: schema
        for path, schema in properties()
        if isinstance(schema.get("additionalProperties"), dict)
    }
    titles = {"providers.*.prices": "glob", "mcp.servers.*.headers": "header_name"}
    assert set(maps) == {"providers", "agents", "mcp.servers", "policies", *titles}
    for path, schema in maps.items():
        title = titles.get(path, "name")
        assert schema["propertyNames"]["title"] == title
        assert schema["additionalProperties"]["additionalProperties"] is False


def test_every_named_type_is_used() -> None:
    """By a key, an item or the names of a map."""
    used = {schema.get("title") for schema in schemas(manifest_schema())}
    assert set(types_by_name()) <= used


def test_an_inherited_key_is_a_key_of_the_same_kind() -> None:
    """Type, bounds, default and class are those of the key whose value is used."""
    inherited = [spec for spec in keys().values() if spec.inherits]
    assert inherited
    for spec in inherited:
        source = keys()[spec.inherits]
        assert (spec.hint, spec.default, spec.apply) == (source.hint, source.default, source.apply)


def test_one_file_a_table() -> None:
    """Module and field of the model have one name."""
    for item in fields(Model):
        hint = hints_of(Model)[item.name]
        kind = get_args(hint)[1] if get_origin(hint) is Mapping else hint
        stem = "slots" if item.name == "adapters" else item.name
        assert kind.__module__ == f"agentbox.manifest.tables.{stem}"


def test_seconds_and_sizes_carry_their_unit() -> None:
    """Every key that ends in `_seconds` is an integer of seconds; every size is in bytes."""
    for path, schema in SCHEMAS.items():
        if path.endswith("_seconds"):
            assert (schema["type"], schema["x-agentbox-unit"]) == ("integer", "seconds"), path
        if schema.get("title") == "size":
            assert schema["x-agentbox-unit"] == "bytes", path


def test_conditions_name_keys_and_values_that_exist() -> None:
    """A condition on a misspelt key, or on a value that it cannot have, would be dead."""
    assert conditions()
    for path, wanted in conditions().items():
        for item in wanted:
            schema = SCHEMAS[item.key]
            allowed = schema.get("enum", [True, False] if schema["type"] == "boolean" else None)
            assert allowed is not None, path
            assert set(item.values) <= set(allowed), path


@pytest.mark.parametrize("slot", SLOTS)
def test_a_choice_of_a_slot_has_its_options(slot: str) -> None:
    """`use` names the implementations with an options class, and `off`; every option is a key of
    the table and used by its implementations."""
    table = hints_of(AdaptersTable)[slot]
    assert [*table.options, "off"] == SCHEMAS[f"adapters.{slot}.use"]["enum"]
    for use, options in table.options.items():
        for name in options.names():
            (condition,) = conditions()[f"adapters.{slot}.{name}"]
            assert condition.holds(use)


@pytest.mark.parametrize("slot", SLOTS)
def test_the_name_of_an_implementation_begins_with_its_class(slot: str) -> None:
    """Local, external or off; each slot has one of each."""
    classes = [slot_class(use) for use in SCHEMAS[f"adapters.{slot}.use"]["enum"]]
    assert sorted(set(classes)) == ["external", "local", "off"]
