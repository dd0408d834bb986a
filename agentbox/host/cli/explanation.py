"""Explanations for `agentbox config explain`: rules by code, keys and tables by path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.key_text import default_text, type_text, when_text
from agentbox.manifest.declarations.conditions import conditions_of
from agentbox.manifest.keys import effective_values, generic_path, keys
from agentbox.manifest.load import Manifest
from agentbox.manifest.origin import origin
from agentbox.manifest.rules._retired import RETIRED
from agentbox.manifest.rules.discovery import Rule, discover
from agentbox.manifest.schema.generator import properties, resolve_reference, schema_at
from agentbox.manifest.suggest import suggest_names
from agentbox.manifest.toml_text import format_toml


@dataclass(frozen=True)
class ConfigExplanation:
    """An explanation as data and as text."""

    data: Mapping[str, Any]
    text: str


def is_code(text: str) -> bool:
    """True when the text has the form of a rule code."""
    return re.fullmatch(r"[A-Za-z]\d{3,}", text) is not None


def explain_code(code: str) -> ConfigExplanation:
    """Explains a rule or a retired code. Raises AgentboxError (exit 2) with the nearest code."""
    if code in RETIRED:
        retired = RETIRED[code]
        hint = (
            f"\nSee {retired.successor}: `agentbox config explain {retired.successor}`."
            if retired.successor
            else ""
        )
        return ConfigExplanation(
            {"code": code, "retired": retired.reason, "successor": retired.successor},
            f"{code} is not in use: {retired.reason}{hint}",
        )
    if code not in discover():
        raise AgentboxError(
            f"cannot explain {code}: unknown code",
            f"The nearest is {_nearest_code(code)}; docs/rules.md lists all codes.",
            exit_code=ExitCode.USAGE,
        )
    rule = discover()[code]
    return ConfigExplanation(_rule_data(rule), _rule_text(rule))


def _nearest_code(code: str) -> str:
    """The code with the same number and any letter, else the one with the closest number."""
    return min(discover(), key=lambda other: (abs(int(other[1:]) - int(code[1:])), other))


def _rule_data(rule: Rule) -> dict[str, Any]:
    names = ("code", "title", "severity", "since", "reads", "bad", "good")
    return {"why": rule.reason, **{name: getattr(rule, name) for name in names}}


def _rule_text(rule: Rule) -> str:
    parts = [
        f"{rule.code} {rule.title} ({rule.severity}, since {rule.since})",
        "",
        rule.reason,
        "",
        f"reads: {', '.join(rule.reads)}",
        "",
        "trips:",
        indent(rule.bad.strip() or "(the smallest manifest)", "    "),
        "passes:",
        indent(rule.good.strip() or "(the smallest manifest)", "    "),
    ]
    return "\n".join(parts)


def explain_key(manifest: Manifest | None, path: str) -> ConfigExplanation:
    """Explains a key, with its value if there is a manifest. Raises AgentboxError (exit 2)."""
    schema = schema_at(path)
    if schema is None or (key_path := generic_path(path)) not in keys():
        return _explain_table(path, schema)
    spec = keys()[key_path]
    values = effective_values(manifest) if manifest else {}
    value = values.get(path, spec.default)
    readers = [rule.code for rule in discover().values() if generic_path(path) in rule.reads]
    data = {
        "key": path,
        "type": type_text(schema),
        "default": None if spec.required or spec.inherits else spec.default,
        "inherits": spec.inherits or None,
        "apply": spec.apply,
        "description": schema["description"],
        "value": value,
        "line": manifest.positions[path].line if manifest and path in manifest.positions else None,
        "source": str(origin(manifest, path, values)) if manifest and path in values else "default",
        "read_when": when_text(conditions_of(path)),
        "rules": readers,
    }
    return ConfigExplanation(data, _key_text(data, default_text(spec)))


def _key_text(data: Mapping[str, Any], default: str) -> str:
    rows = [
        ("value", f"{format_toml(data['value'])} ({data['source']})"),
        ("type", data["type"]),
        ("default", default.replace("`", "")),
        ("a change needs", data["apply"]),
        ("read", data["read_when"] or "always"),
        ("rules", ", ".join(data["rules"]) or "none"),
    ]
    return "\n".join(
        [
            data["key"],
            f"  {data['description']}",
            *(f"  {name + ':':<16}{text}" for name, text in rows),
        ]
    )


def _explain_table(path: str, schema: Mapping[str, Any] | None) -> ConfigExplanation:
    if schema is None or not schema.get("properties"):
        suggestions = suggest_names(path, dict(properties()), limit=1)
        raise AgentboxError(
            f"cannot explain {path}: unknown key",
            f"Did you mean {suggestions[0]}?"
            if suggestions
            else "docs/manifest.md lists all keys.",
            exit_code=ExitCode.USAGE,
        )
    children = {
        name: resolve_reference(dict(item))["description"]
        for name, item in schema["properties"].items()
    }
    lines = [
        f"[{path}]",
        f"  {schema['description']}",
        *(f"  {name:<24}{text}" for name, text in children.items()),
    ]
    return ConfigExplanation(
        {"table": path, "description": schema["description"], "keys": children}, "\n".join(lines)
    )
