"""The schema of a manifest in one document, for validation and for editors. `python -m
agentbox.manifest.schema.bundle` writes it. The section files are the source; not all TOML language
servers resolve references between files.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from agentbox.core.data_files import schema_dir

_URN: Final = "urn:agentbox:schema:"
_TYPE_REFERENCE: Final = "#/$defs/common/$defs/"
BUNDLE: Final = "agentbox.bundle.json"


@cache
def bundle() -> dict[str, Any]:
    """Root and sections in one document, with local references to tables only. Do not modify the
    result. Types are inlined: some language servers ignore annotations beside a reference.
    """
    directory = schema_dir()
    root = _read(directory / "agentbox.schema.json")
    stems = [
        "common",
        *(reference["$ref"].removeprefix(_URN) for reference in root["properties"].values()),
    ]
    sections = {
        stem: _localised(_read(directory / f"sections/{stem}.json"), stem) for stem in stems
    }
    document: dict[str, Any] = _localised(root, "")
    return {**document, "$defs": _inline_types(sections, sections["common"]["$defs"])}


def _inline_types(value: Any, types: dict[str, Any]) -> Any:
    """Replaces each reference to a type by the type; annotations beside the reference take
    precedence.
    """
    if isinstance(value, list):
        return [_inline_types(item, types) for item in value]
    if not isinstance(value, dict):
        return value
    result = {name: _inline_types(item, types) for name, item in value.items()}
    reference = result.get("$ref", "")
    if not isinstance(reference, str) or not reference.startswith(_TYPE_REFERENCE):
        return result
    del result["$ref"]
    return {**_inline_types(types[reference.removeprefix(_TYPE_REFERENCE)], types), **result}


def properties() -> Iterator[tuple[str, dict[str, Any]]]:
    """All key paths with their schemas, in the order of the files, including tables. Map entries
    have their names if the schema has them, else `*`.
    """
    for name in bundle()["properties"]:
        yield from _walk(name, bundle()["properties"][name])


def schema_at(path: str) -> dict[str, Any] | None:
    """The schema of a real key path, with any entry names; None if it does not exist."""
    schema: Any = bundle()
    for name in path.split("."):
        schema = resolve_reference(schema)
        schema = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
        if not isinstance(schema, dict):
            return None
    return resolve_reference(schema)


def resolve_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """Follows the `$ref` of a schema; its own annotations take precedence."""
    if "$ref" not in schema:
        return schema
    target: Any = bundle()
    for step in schema["$ref"].removeprefix("#/").split("/"):
        target = target[step]
    return {
        **resolve_reference(target),
        **{keyword: value for keyword, value in schema.items() if keyword != "$ref"},
    }


def _walk(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    full_schema = resolve_reference(schema)
    yield path, full_schema
    for name, inner in full_schema.get("properties", {}).items():
        yield from _walk(f"{path}.{name}", inner)
    if isinstance(entry := full_schema.get("additionalProperties"), dict):
        yield from _walk(f"{path}.*", entry)


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def _localised(value: Any, stem: str) -> Any:
    """Localises references to this document, and removes the file's identity."""
    if isinstance(value, list):
        return [_localised(item, stem) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        keyword: _reference(item, stem) if keyword == "$ref" else _localised(item, stem)
        for keyword, item in value.items()
        if not (stem and keyword in ("$schema", "$id"))
    }


def _reference(target: str, stem: str) -> str:
    if target.startswith("#/"):
        return f"#/$defs/{stem}/{target[2:]}"
    document, _, inside = target.removeprefix(_URN).partition("#")
    return f"#/$defs/{document}{inside}"


def bundle_text() -> str:
    """The required content of `schema/agentbox.bundle.json`."""
    return json.dumps(bundle(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (schema_dir() / BUNDLE).write_text(bundle_text())
