"""What the author of a manifest can write instead: similar names, other tables, examples."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from agentbox.manifest.declarations.key_path import KeyPath
from agentbox.manifest.schema.examples import EXAMPLES
from agentbox.manifest.schema.generator import properties
from agentbox.manifest.suggest import suggest_names
from agentbox.manifest.toml_text import (
    TYPE_EXAMPLES,
    format_toml,
)

_RENAMED: Final = {"federation": "mesh"}


def suggest_key(name: str, names: list[str], path: KeyPath) -> str:
    """A sentence about an unknown key: another name, the tables that have it, or the keys here."""
    if len(path) == 1 and name in _RENAMED:
        return f"The table is called `[{_RENAMED[name]}]`."
    if suggestions := suggest_names(name, names):
        return f"Did you mean {' or '.join(f'`{suggestion}`' for suggestion in suggestions)}?"
    if tables := _tables_by_key().get(name):
        return f"`{name}` belongs to {' or '.join(f'`[{table}]`' for table in tables[:3])}."
    return f"Remove it. Keys here: {', '.join(names)}."


@cache
def _tables_by_key() -> Mapping[str, list[str]]:
    """Key name -> the tables that have it."""
    result: dict[str, list[str]] = {}
    for path, _schema in properties():
        table, _, name = path.rpartition(".")
        if table and name != "*" and "exceptions" not in table:
            result.setdefault(name, []).append(table.replace("*", "<name>"))
    return result


def example_value(schema: Mapping[str, Any]) -> str:
    """A valid value in TOML."""
    if "const" in schema:
        return format_toml(schema["const"])
    if schema.get("title") in EXAMPLES:
        return EXAMPLES[schema["title"]][1]
    if schema.get("type") == "object":
        return (
            "{ "
            + ", ".join(
                f"{n} = {example_value(schema['properties'][n])}"
                for n in schema.get("required", ())
            )
            + " }"
        )
    return TYPE_EXAMPLES[str(schema.get("type", "string"))][1]
