"""Every key of the schema has a reader, and every value of every enum one that tells it from the others, or E606 refuses it.

`READERS` says where each table is read. A key is read where its name stands in the code there, as an attribute or in a
string; two values are told apart where one stands and the other does not: both in one list are one choice.
"""

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.declarations.conditions import conditions
from agentbox.manifest.features.supported_choices import AVAILABLE, UNREAD
from agentbox.manifest.keys import generic_path, keys
from agentbox.manifest.schema.generator import properties, resolve_reference

READERS: dict[str, tuple[str, ...]] = {
    "meta.*": (
        "agentbox/plan/render/compose.py",
        "agentbox/plan/render/podman.py",
        "agentbox/api",
        "agentbox/plan/render",
    ),
    "image.systems": (
        "agentbox/plan/lockfile",
        "agentbox/plan/features/placeholders.py",
        "agentbox/host/packages",
    ),
    "image.*": ("agentbox/host/packages", "agentbox/host/image"),
    "resources.tmp_size": ("agentbox/plan/storage.py",),
    "resources.log_size": ("agentbox/plan",),
    "resources.*": ("agentbox/plan/render",),
    "api.*": (
        "agentbox/api",
        "agentbox/plan/render",
        "agentbox/plan/secrets.py",
        "agentbox/box/supervision",
    ),
    "network.*": (
        "agentbox/host/network",
        "agentbox/host/cli/context.py",
        "agentbox/box/supervision/outgoing_files.py",
        "agentbox/gateway/proxy",
    ),
    "observability.*": (
        "agentbox/plan",
        "agentbox/core/logging.py",
        "agentbox/api",
        "agentbox/plan/render",
    ),
    "upgrade.*": (
        "agentbox/host/cli/stages",
        "agentbox/host/cli/commands/box/upgrade.py",
        "agentbox/host/generations",
    ),
    "backup.folder": ("agentbox/plan/build.py",),
    "backup.include": ("agentbox/api/backups", "agentbox/adapters"),
    "backup.*": (
        "agentbox/api/backups",
        "agentbox/plan/backup.py",
        "agentbox/plan/backup_table.py",
        "agentbox/backup/restic",
    ),
    "adapters.*": (
        "agentbox/adapters",
        "agentbox/agents",
        "agentbox/plan/slots.py",
        "agentbox/plan/secrets.py",
        "agentbox/core/storage",
    ),
    "mesh.*": ("agentbox/mesh", "agentbox/api", "agentbox/plan/secrets.py"),
    "sovereign_mesh.*": ("config/features",),
    "providers.*.prices.*": ("agentbox/policy/cost.py",),
    "cost.*": ("agentbox/gateway",),
    "providers.*": ("agentbox/gateway", "agentbox/agents"),
    "privacy.policy.outbound": ("agentbox/gateway/llm", "agentbox/policy/redaction"),
    "privacy.policy.*": ("agentbox/adapters", "agentbox/policy/redaction"),
    "privacy.*": ("agentbox/policy/redaction",),
    "desktop.*": ("config/features", "agentbox/box/programs/desktop"),
    "gpu.*": ("config/features",),
    "toolchains.*": ("config/features",),
    "skills.corpus.paths": ("agentbox/host/packages/lock_inputs.py",),
    "skills.corpus.*": ("agentbox/plan/build.py",),
    "skills.*": ("config/features",),
    "agents.*.limits.*": (
        "agentbox/agents",
        "agentbox/policy/limits",
        "agentbox/gateway",
        "agentbox/sandbox",
    ),
    "agents.*.preset": ("agentbox/agents", "config/agents"),
    "agents.*.llm.*": ("agentbox/gateway", "agentbox/policy/rights"),
    "agents.*.acp.*": ("agentbox/sessions",),
    "agents.*": ("agentbox/agents", "agentbox/api", "agentbox/policy/rights"),
    "mcp.servers.*.limits.*": ("agentbox/agents", "agentbox/policy/limits", "agentbox/sandbox"),
    "mcp.servers.*.env": ("agentbox/agents",),
    "mcp.*": ("agentbox/mcphost", "agentbox/agents"),
    "sandboxes.*": ("agentbox/agents",),
    "acp.*": ("agentbox/sessions",),
    "state.*": ("agentbox/api",),
    "limits.*": (
        "agentbox/agents",
        "agentbox/policy/limits",
        "agentbox/gateway",
        "agentbox/sandbox",
    ),
    "policies.*": (
        "agentbox/policy/profiles.py",
        "agentbox/policy/policy.py",
        "agentbox/policy/rights",
        "agentbox/gateway",
    ),
    "egress.*": ("agentbox/gateway",),
    "security.audit_acknowledged": ("agentbox/manifest/rules",),
    "security.exceptions.*": (
        "agentbox/manifest/features",
        "agentbox/plan",
        "agentbox/plan/render",
    ),
}
"""The first pattern that fits counts."""

COMPUTED = {
    "meta.schema_version": (
        "agentbox/manifest/schema/generator.py",
        "const",
    ),  # the schema has one value, and refuses another
    "mesh.token_env": ("agentbox/box/supervision/slot_credentials.py", "_env"),
    "mesh.token_file": ("agentbox/box/supervision/slot_credentials.py", "_file"),
    **{
        f"adapters.{slot}.dsn_{kind}": ("agentbox/box/supervision/slot_credentials.py", f"_{kind}")
        for slot in ("beads", "memory")
        for kind in ("env", "file")
    },
}
"""Keys whose name no code writes out: the file that reads them, and by which word."""


def readers(key: str) -> tuple[str, ...]:
    """Where the table of a key is read."""
    found = next((paths for pattern, paths in READERS.items() if fnmatchcase(key, pattern)), None)
    assert found, f"{key}: no row of READERS says who reads it"
    return found


@functools.cache
def words(place: str) -> tuple[frozenset[str], frozenset[frozenset[str]]]:
    """The names that the files of a place read, and the words that occur together there."""
    root = CHECKOUT / place
    names: set[str] = set()
    together: set[frozenset[str]] = set()
    for path in (
        [root]
        if root.is_file()
        else sorted(root.rglob("*.toml" if place.startswith("config") else "*.py"))
    ):
        if path.suffix == ".toml":
            written = set(re.findall(r"[\w.*-]+", path.read_text()))
            names |= written
            together |= {frozenset({word}) for word in (*written, path.stem)}
        else:
            _code(ast.parse(path.read_text()), names, together)
    return frozenset(names), frozenset(together)


def _code(tree: ast.AST, names: set[str], together: set[frozenset[str]]) -> None:
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            names.add(node.attr)
        elif isinstance(node, ast.Tuple | ast.List | ast.Set) and all(
            isinstance(e, ast.Constant) for e in node.elts
        ):
            inside |= {id(one) for one in node.elts}
            together.add(frozenset(one.value for one in node.elts if isinstance(one.value, str)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= {node.value, node.value.rpartition(".")[2]}
            if id(node) not in inside:
                together.add(frozenset({node.value}))


def served(key: str, value: Any) -> bool:
    """Whether E606 lets a value pass."""
    return key not in AVAILABLE or value in AVAILABLE[key]


def unreachable(key: str) -> bool:
    """Whether E606 rejects the key or each value under which it is read, or no value reads it,
    which W601 or E003 reports."""
    return (
        key in UNREAD
        or (key in AVAILABLE and len(AVAILABLE[key]) == 1)
        or any(
            not item.negated
            and not any(served(item.key, value) and value != "off" for value in item.values)
            for item in conditions().get(key, ())
        )
    )


def read(key: str) -> bool:
    """By its name, in a feature file by its complete path."""
    if key in COMPUTED:
        file, word = COMPUTED[key]
        return word in words(file)[0]
    name = key.rpartition(".")[2]
    return any(
        (key if place.startswith("config") else name) in words(place)[0] for place in readers(key)
    )


def enums() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Keys that choose from a list, or contain words of one."""
    found = {}
    for path, schema in properties():
        choice = schema if "enum" in schema else resolve_reference(schema.get("items", {}))
        if "enum" in choice:
            found[generic_path(path)] = tuple(choice["enum"])
    yield from sorted(found.items())


def alike(key: str, values: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Pairs of supported values that no reader distinguishes."""
    groups = [group for place in readers(key) for group in words(place)[1]]
    pairs = itertools.combinations([value for value in values if served(key, value)], 2)
    return [(a, b) for a, b in pairs if not any((a in group) != (b in group) for group in groups)]


def test_every_key_has_a_reader() -> None:
    """Or E606 refuses it, or the switch that it stands under."""
    assert len(keys()) > 200
    assert [key for key in keys() if not unreachable(key) and not read(key)] == []


def test_every_value_of_an_enum_does_something_of_its_own() -> None:
    """Or E606 refuses it."""
    found = dict(enums())
    assert len(found) > 30
    assert {
        key: pairs
        for key, values in found.items()
        if not unreachable(key) and (pairs := alike(key, values))
    } == {}


def test_every_row_is_needed() -> None:
    """Each place exists, and each pattern is the first that matches a key."""
    assert [
        place
        for paths in READERS.values()
        for place in paths
        if not (Path(CHECKOUT) / place).exists()
    ] == []
    first = {
        next(pattern for pattern in READERS if fnmatchcase(key, pattern))
        for key in keys()
        if key not in UNREAD and key not in COMPUTED
    }
    assert set(READERS) - first == set()


@pytest.mark.parametrize("key", ["resources.sparkle", "agents.*.sparkle", "skills.docs.sparkle"])
def test_a_new_key_without_a_reader_is_found(key: str) -> None:
    """In a table that other keys of are read."""
    assert not read(key)


def test_a_new_table_needs_a_row() -> None:
    """Its keys have no known reader."""
    with pytest.raises(AssertionError, match="no row of READERS"):
        readers("sparkle.enabled")


def test_values_of_one_list_are_one_choice() -> None:
    """A value that code only ever names beside another does what that one does; a value that nothing names neither."""
    names: set[str] = set()
    together: set[frozenset[str]] = set()
    _code(ast.parse('PIPED = ("stdio", "acp")\nif protocol in PIPED: pass'), names, together)
    assert together == {frozenset({"stdio", "acp"})}
    assert alike("agents.*.workspace", ("branch", "direct", "sparkle", "glitter")) == [
        ("sparkle", "glitter")
    ]
