"""docs/manifest.md, from the tables."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.key_text import default_text, type_text, when_text
from agentbox.manifest.declarations.conditions import conditions
from agentbox.manifest.keys import generic_path, keys
from agentbox.manifest.schema.generator import (
    PUBLISHED,
    manifest_schema,
    properties,
    type_schema,
)
from agentbox.manifest.types import types_by_name

from reference import COMMAND

TARGET: Final = CHECKOUT / "docs/manifest.md"
_INTRO: Final = f"""# agentbox.toml

<!-- Generated from agentbox/manifest/tables by `{COMMAND}`. Do not edit. -->

One file defines a box: TOML 1.0, UTF-8, at most 1 MiB. Absent keys have the default below; a
manifest needs only `meta.schema_version`. `agentbox config validate` checks a file,
`agentbox config explain KEY` explains a key and where its value comes from, `agentbox config show`
prints every key with its value.

A value is never a credential: keys that end in `_env` contain the name of an environment variable,
keys that end in `_file` a path in the container. Only one of such a pair may be set.

| What a change needs | |
|---|---|
| live | `agentbox up`: applied in place, read at the next use |
| boot | `agentbox restart` of the same container |
| recreate | `agentbox up`: the same image, a new container |
| rebuild | `agentbox up`: a new image, then a new container |

The first line `#:schema ./schema/{PUBLISHED.name}` gives editors completion, explanations and
diagnostics; Taplo (Even Better TOML) and Tombi are tested.

Choices of the schema that this release does not support are rejected by rule E606 (docs/rules.md).
"""


def page() -> str:
    """Return the page."""
    return "\n".join(
        [
            _INTRO,
            *_types_section(),
            *(line for name in manifest_schema()["properties"] for line in _section(name)),
        ]
    )


def _types_section() -> Iterator[str]:
    yield "## Type words\n"
    yield "| Word | Form |\n|---|---|"
    for name, hint in types_by_name().items():
        words = type_schema(hint)
        form = f"`{words['pattern']}`" if "pattern" in words else type_text({**words, "title": ""})
        cell = form if len(form) < 90 else ""
        yield f"| {name} | {words['description']} {_cell(cell)} |"
    yield ""


def _section(table: str) -> Iterator[str]:
    """Yield the tables of one section, each with its own keys."""
    schemas = {
        path: schema
        for path, schema in properties()
        if path == table or path.startswith(f"{table}.")
    }
    seen: set[str] = set()
    for path, schema in schemas.items():
        key_path = generic_path(path)
        if "properties" not in schema or key_path in seen:
            continue
        seen.add(key_path)
        level = "##" if path in (table, f"{table}.*") else "###"
        yield f"{level} `[{_heading(key_path)}]`\n"
        yield f"{schema['description']}\n"
        rows = [row for name in schema["properties"] if (row := _row(f"{path}.{name}", schemas))]
        if rows:
            yield "| Key | Type | Default | Change | Meaning |\n|---|---|---|---|---|"
            yield from rows
            yield ""


def _heading(path: str) -> str:
    path = path.replace(".prices.*", '.prices."<model>"')
    return path.replace(".*", ".<key>" if path.startswith("security.") else ".<name>")


def _row(path: str, schemas: Mapping[str, Mapping[str, Any]]) -> str:
    schema = schemas[path]
    if "properties" in schema or "propertyNames" in schema:
        return ""
    spec = keys()[generic_path(path)]
    default = default_text(spec)
    condition = when_text(conditions().get(generic_path(path), ()))
    meaning = f"{schema['description']}{f' Read while {condition}.' if condition else ''}"
    cells = [_cell(type_text(schema)), _cell(default), spec.apply, _cell(meaning)]
    return f"| `{path.rpartition('.')[2]}` | {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def outputs() -> Mapping[Path, str]:
    """Return the generated file and its text."""
    return {TARGET: page()}
