"""What `agentbox config explain` and `show` know: rules by code, keys by path, and what a manifest resolves to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from agentbox.errors import AgentboxError, ExitCode
from agentbox.features import enabled, load_features, port_table, slot_class
from agentbox.manifest import Manifest, effective_values, generic, keys, plain
from agentbox.manifest.bundle import properties, resolved
from agentbox.manifest.conditions import conditions
from agentbox.manifest.nearest import nearest
from agentbox.manifest.reference import type_text, when_text
from agentbox.manifest.sections.adapters import SLOTS
from agentbox.manifest.spelling import spell
from agentbox.rules import Rule, discover
from agentbox.rules._retired import RETIRED


@dataclass(frozen=True)
class Explanation:
    """The same for programs and for people."""

    data: Mapping[str, Any]
    text: str


def is_code(text: str) -> bool:
    """True for what looks like the code of a rule."""
    return re.fullmatch(r"[A-Za-z]\d{3,}", text) is not None


def explain_code(code: str) -> Explanation:
    """A rule, or why a code is retired. Raises AgentboxError (exit 2) with the nearest code."""
    if code in RETIRED:
        old = RETIRED[code]
        see = f"\nSee {old.successor}: `agentbox config explain {old.successor}`." if old.successor else ""
        return Explanation(
            {"code": code, "retired": old.reason, "successor": old.successor},
            f"{code} is not in use: {old.reason}{see}",
        )
    if code not in discover():
        raise AgentboxError(
            f"cannot explain {code}: there is no such code",
            f"The nearest is {_nearest_code(code)}; docs/rules.md lists all codes.",
            exit_code=ExitCode.USAGE,
        )
    rule = discover()[code]
    return Explanation(_rule_data(rule), _rule_text(rule))


def _nearest_code(code: str) -> str:
    """The code of the same number, whatever its letter; else the one whose number is closest."""
    return min(discover(), key=lambda known: (abs(int(known[1:]) - int(code[1:])), known))


def _rule_data(rule: Rule) -> dict[str, Any]:
    names = ("code", "title", "severity", "since", "why", "reads", "bad", "good")
    return {name: getattr(rule, name) for name in names}


def _rule_text(rule: Rule) -> str:
    parts = [
        f"{rule.code} {rule.title} ({rule.severity}, since {rule.since})",
        "",
        rule.why,
        "",
        f"reads: {', '.join(rule.reads)}",
        "",
        "trips:",
        indent(rule.bad.strip() or "(the smallest manifest)", "    "),
        "passes:",
        indent(rule.good.strip() or "(the smallest manifest)", "    "),
    ]
    return "\n".join(parts)


def explain_key(manifest: Manifest | None, path: str) -> Explanation:
    """A key of the schema, with its value where there is a manifest. Raises AgentboxError (exit 2) with near keys."""
    schemas = dict(properties())
    if path not in schemas or generic(path) not in keys():
        return _explain_table(path, schemas)
    schema, spec = schemas[path], keys()[generic(path)]
    value = effective_values(manifest).get(path, spec.default) if manifest else spec.default
    readers = [rule.code for rule in discover().values() if generic(path) in rule.reads]
    data = {
        "key": path,
        "type": type_text(schema),
        "default": None if spec.required else spec.default,
        "apply": spec.apply,
        "description": schema["description"],
        "value": value,
        "line": manifest.where[path].line if manifest and path in manifest.where else None,
        "read_when": when_text(conditions().get(path, ())),
        "rules": readers,
    }
    return Explanation(data, _key_text(data))


def _key_text(data: Mapping[str, Any]) -> str:
    source = f"line {data['line']}" if data["line"] else "the default"
    rows = [
        ("value", f"{spell(data['value'])} ({source})"),
        ("type", data["type"]),
        ("default", "required" if data["default"] is None else spell(data["default"])),
        ("a change needs", data["apply"]),
        ("read", data["read_when"] or "always"),
        ("rules", ", ".join(data["rules"]) or "none"),
    ]
    return "\n".join([data["key"], f"  {data['description']}", *(f"  {name + ':':<16}{text}" for name, text in rows)])


def _explain_table(path: str, schemas: Mapping[str, Mapping[str, Any]]) -> Explanation:
    schema = schemas.get(path)
    if schema is None or "properties" not in schema:
        near = nearest(path, schemas, limit=1)
        raise AgentboxError(
            f"cannot explain {path}: there is no such key",
            f"Did you mean {near[0]}?" if near else "docs/manifest.md lists all keys.",
            exit_code=ExitCode.USAGE,
        )
    inner = {name: resolved(dict(item))["description"] for name, item in schema["properties"].items()}
    lines = [f"[{path}]", f"  {schema['description']}", *(f"  {name:<24}{text}" for name, text in inner.items())]
    return Explanation({"table": path, "description": schema["description"], "keys": inner}, "\n".join(lines))


def tables(manifest: Manifest) -> dict[str, Any]:
    """Every key with its effective value, nested as in a manifest; itself a manifest that means the same."""
    return _one_of_each_pair(plain(manifest.usable))


def _one_of_each_pair(table: Mapping[str, Any]) -> dict[str, Any]:
    """Without the member of each `_env` and `_file` pair that is not in use, since only one may be written."""
    kept = {name: _one_of_each_pair(value) if isinstance(value, dict) else value for name, value in table.items()}
    for name in [name for name in kept if name.endswith("_file") and f"{name[:-5]}_env" in kept]:
        del kept[f"{name[:-5]}_env" if kept[name] else name]
    return kept


def resolution(manifest: Manifest) -> dict[str, list[str]]:
    """What the manifest turns on."""
    features, model = load_features(), manifest.usable
    on = enabled(manifest, features)
    return {
        "features": list(on),
        "listeners": [f"{row.port} {row.owner}" for row in port_table(model, features, on)],
        "slots": [f"{slot} {slot_class(slot, getattr(model.adapters, slot).use)}" for slot in SLOTS],
    }
