"""Writes `tests/rules/full.toml`: a manifest with every key, from the tables. Of each `_env` and
`_file` pair it has one. Run `python tools/full_manifest.py` after a change of a table.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agentbox.manifest.declarations.key_path import quoted
from agentbox.manifest.declarations.specs import KeySpec, MapSpec, TableSpec, manifest_spec
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.schema.examples import EXAMPLES
from agentbox.manifest.schema.generator import type_schema
from agentbox.manifest.toml_text import format_toml

TARGET: Final = Path(__file__).parents[1] / "tests/rules/full.toml"
COMMAND: Final = "python tools/full_manifest.py"
ENTRIES: Final = {
    "providers": "anthropic",
    "providers.anthropic.prices": "small-*",
    "agents": "builder",
    "mcp.servers": "files",
    "mcp.servers.files.headers": "X-Region",
    "policies": "builder",
    "security.exceptions": "desktop",
}
"""The one entry of each map."""

FROM_FILES: Final = (
    "adapters.beads.dsn",
    "adapters.pods.token",
    "adapters.events.token",
    "mesh.token",
)
"""Pairs of which the `_file` is written; of others the `_env`."""


def _rule(*patterns: str, **more: Any) -> list[dict[str, Any]]:
    return [{"mode": "allow", "patterns": list(patterns), **more}]


CHOSEN: Final[dict[str, Any]] = {
    "agents.*.children": ["builder"],
    "agents.*.profile": "builder",
    "agents.*.restart.policy": "on-failure",
    "agents.*.mcp": ["files"],
    "gpu.backend": "local-cuda",
    "mcp.servers.*.profile": "service",
    "image.systems": ["x86_64-linux", "aarch64-linux"],
    "policies.*.agent": _rule("builder", operations=["spawn", "message", "signal"]),
    "policies.*.env": _rule("LC_*", operations=["read"]),
    "policies.*.exec": _rule("/usr/bin/git", operations=["run"]),
    "policies.*.fs": _rule("$WORKSPACE/**", operations=["write"]),
    "policies.*.llm": _rule("anthropic/small-*", operations=["call"]),
    "policies.*.net": _rule(
        "*.example.com", operations=["connect"], methods=["GET"], paths=["/v1/*"]
    ),
    "policies.*.tool": _rule("git/*", operations=["call"]),
    "security.exceptions.*.device_requests": [
        {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    ],
    "security.exceptions.*.inherits": ["playwright"],
    "security.exceptions.*.reason": "the display server wants all of it",
    "security.exceptions.*.runtime": "nvidia",
    "security.exceptions.*.seccomp": "agentbox",
    "security.exceptions.*.tmpfs": [
        {"target": "/var/cache/x", "size": "8MiB", "mode": "0700", "exec": True}
    ],
    "security.exceptions.*.volumes": [
        {"source": "desktop", "target": "/var/lib/desktop", "read_only": False}
    ],
    "sovereign_mesh.publish_agent_events": True,
    "sovereign_mesh.relay.allowed_pubkeys": ["b" * 64],
}
"""Values that name something, or of which the type's example is not a useful one."""


def text() -> str:
    """The file."""
    head = f"# Every key, written by `{COMMAND}`. Rules may have findings."
    return "\n\n".join([head, *_tables(manifest_spec(), "")]) + "\n"


def _tables(spec: TableSpec, path: str) -> Iterator[str]:
    """The tables with keys of their own, each with its header."""
    keys = {name: item for name, item in spec.members.items() if isinstance(item, KeySpec)}
    lines = [
        f"{name} = {format_toml(_value(item))}"
        for name, item in keys.items()
        if not _is_other_of_a_pair(item, keys)
    ]
    if lines:
        yield "\n".join([f"[{path}]", *lines])
    for name, member in spec.members.items():
        inner = f"{path}.{name}" if path else name
        if isinstance(member, TableSpec):
            yield from _tables(member, inner)
        elif isinstance(member, MapSpec):
            yield from _tables(member.entry, f"{inner}.{quoted(ENTRIES[inner])}")


def _is_other_of_a_pair(item: KeySpec, keys: Mapping[str, KeySpec]) -> bool:
    """True for the key of an `_env` and `_file` pair that is not written."""
    stem, _, kind = item.path.rpartition("_")
    partner = f"{stem}_{'file' if kind == 'env' else 'env'}".rpartition(".")[2]
    return kind in ("env", "file") and partner in keys and (kind == "file") != (stem in FROM_FILES)


def _value(spec: KeySpec) -> Any:
    """A chosen value, else the default if it says something, else an example of the type."""
    if spec.path in CHOSEN:
        return CHOSEN[spec.path]
    if spec.default is False:
        return spec.path.endswith(".enabled") or spec.path in _gates()
    if spec.default in ("", []) or spec.required:
        return _example(type_schema(spec.hint))
    return spec.default


def _gates() -> set[str]:
    """The switches of features."""
    return {feature.gate.key for feature in load_features().values() if feature.gate}


def _example(schema: dict[str, Any]) -> Any:
    if schema.get("title") in EXAMPLES:
        return tomllib.loads(f"x = {EXAMPLES[schema['title']][1]}")["x"]
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if "properties" in schema:
        return {
            name: inner.get("default") or _example(inner)
            for name, inner in schema["properties"].items()
        }
    return [_example(schema["items"])] if schema["type"] == "array" else "text"


if __name__ == "__main__":
    TARGET.write_text(text())
