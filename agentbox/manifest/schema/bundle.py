"""The schema of a manifest in one document, for validation here and for editors. `python -m agentbox.manifest.schema.bundle` writes it.

The sections stay the source; TOML language servers do not all resolve references between files.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from agentbox.core.data_files import schema_dir

_URN: Final = "urn:agentbox:schema:"
_WORDS: Final = "#/$defs/common/$defs/"
BUNDLE: Final = "agentbox.bundle.json"


@cache
def bundle() -> dict[str, Any]:
    """Root and sections in one, with local references to tables only. Do not change the result.

    Type words stand where they are used: some language servers show nothing of what is written beside a reference.
    """
    folder = schema_dir()
    root = _read(folder / "agentbox.schema.json")
    stems = ["common", *(reference["$ref"].removeprefix(_URN) for reference in root["properties"].values())]
    sections = {stem: _localised(_read(folder / f"sections/{stem}.json"), stem) for stem in stems}
    document: dict[str, Any] = _localised(root, "")
    return {**document, "$defs": _with_words(sections, sections["common"]["$defs"])}


def _with_words(value: Any, words: dict[str, Any]) -> Any:
    """The same with each reference to a type word replaced by the word; what is written beside the reference wins."""
    if isinstance(value, list):
        return [_with_words(item, words) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _with_words(item, words) for name, item in value.items()}
    reference = kept.get("$ref", "")
    if not isinstance(reference, str) or not reference.startswith(_WORDS):
        return kept
    del kept["$ref"]
    return {**_with_words(words[reference.removeprefix(_WORDS)], words), **kept}


def properties() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key path with its schema, in the order of the files, tables included. Map entries are spelt by name where
    the schema names them, else `*`."""
    for name in bundle()["properties"]:
        yield from _below(name, bundle()["properties"][name])


def schema_at(path: str) -> dict[str, Any] | None:
    """The schema of a real key path, map entries by any name; None for a path that no manifest has."""
    schema: Any = bundle()
    for name in path.split("."):
        schema = resolved(schema)
        schema = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
        if not isinstance(schema, dict):
            return None
    return resolved(schema)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with its `$ref` followed; its own annotations win."""
    if "$ref" not in schema:
        return schema
    target: Any = bundle()
    for step in schema["$ref"].removeprefix("#/").split("/"):
        target = target[step]
    return {**resolved(target), **{word: value for word, value in schema.items() if word != "$ref"}}


def _below(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    whole = resolved(schema)
    yield path, whole
    for name, inner in whole.get("properties", {}).items():
        yield from _below(f"{path}.{name}", inner)
    if isinstance(entry := whole.get("additionalProperties"), dict):
        yield from _below(f"{path}.*", entry)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def _localised(value: Any, stem: str) -> Any:
    """The same with references into this one document, without the identity of the file it came from."""
    if isinstance(value, list):
        return [_localised(item, stem) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        word: _reference(item, stem) if word == "$ref" else _localised(item, stem)
        for word, item in value.items()
        if not (stem and word in ("$schema", "$id"))
    }


def _reference(target: str, stem: str) -> str:
    if target.startswith("#/"):
        return f"#/$defs/{stem}/{target[2:]}"
    document, _, inside = target.removeprefix(_URN).partition("#")
    return f"#/$defs/{document}{inside}"


def text() -> str:
    """What `schema/agentbox.bundle.json` must hold."""
    return json.dumps(bundle(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (schema_dir() / BUNDLE).write_text(text())
