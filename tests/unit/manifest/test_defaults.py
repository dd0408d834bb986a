"""A default of a manifest key is stated in its declaration alone: what reads the key repeats none."""

import ast
import operator
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.keys import keys
from agentbox.manifest.tables.limits import LimitsTable
from agentbox.manifest.types import size_bytes
from agentbox.sandbox.attacks.case import DEFAULT_LIMITS

NEUTRAL = (None, "", 0, False, True)
"""Says nothing, or switches something on or off."""
EXCUSED = {
    ("agentbox/contracts/orchestrator.py", "workspace"): "of a request for an ad hoc program",
    ("agentbox/policy/rights/grant_set.py", "workspace"): "of an ad hoc program",
    ("agentbox/policy/rights/grant_set.py", "workspace_dir"): "of an ad hoc program",
    ("agentbox/sandbox/spec.py", "grace_seconds"): "of a process that is no agent",
    ("agentbox/gateway/proxy/tunnel.py", "idle_seconds"): "of a tunnel, which has no key",
}
OPERATORS = {ast.LShift: operator.lshift, ast.Mult: operator.mul}
READS = ("get", "pop", "option", "getattr")


@cache
def defaults() -> dict[str, list[Any]]:
    """The defaults of all keys with a name, sizes also in bytes."""
    found: dict[str, list[Any]] = {}
    for path, spec in keys().items():
        values = found.setdefault(path.rpartition(".")[2], [])
        values.append(spec.default)
        if spec.unit == "bytes" and isinstance(spec.default, str):
            values.append(size_bytes(spec.default))
    return found


def stated(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """What code gives a name when nothing else does: of fields, parameters, reads with a default,
    and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id.strip("_").lower().removeprefix("default_"), node.value
        elif isinstance(node, ast.arguments):
            named = [*node.posonlyargs, *node.args]
            yield from (
                (argument.arg, default)
                for argument, default in zip(reversed(named), reversed(node.defaults), strict=False)
            )
            yield from (
                (argument.arg, default)
                for argument, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)
                if default is not None
            )
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in READS and isinstance(key := node.args[-2], ast.Constant):
                yield str(key.value), node.args[-1]


def value(node: ast.expr, constants: dict[str, Any]) -> Any:
    """Of a literal, or of a constant of the module; None for anything else."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        parts = value(node.left, constants), value(node.right, constants)
        return OPERATORS[type(node.op)](*parts) if all(isinstance(p, int) for p in parts) else None
    return node.value if isinstance(node, ast.Constant) else None


def repeated(code: str) -> list[str]:
    """The keys whose default the code states."""
    tree, known = ast.parse(code), defaults()
    constants: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                constants[target.id] = value(node.value, constants)
    return [
        name
        for name, node in stated(tree)
        if (found := value(node, constants)) not in NEUTRAL and found in known.get(name, ())
    ]


def test_no_default_is_stated_below_the_manifest() -> None:
    """In no module of agentbox but those of the manifest."""
    found = {
        (str(path.relative_to(CHECKOUT)), name)
        for path in Path(CHECKOUT, "agentbox").rglob("*.py")
        if "manifest" not in path.relative_to(CHECKOUT).parts[1:2]
        for name in repeated(path.read_text())
    }
    assert found == set(EXCUSED)


@pytest.mark.parametrize(
    "code",
    [
        'seconds = cfg.option("lease_seconds", 60)',
        'size = options.get("max_object", 64 << 20)',
        "SECONDS = 30\nseconds = float(limits.get('tool_timeout_seconds', SECONDS))",
        "DEFAULT_POOL_SIZE = 8",
        "class Config:\n    max_agents: int = 100",
        "def __init__(self, cfg, *, embedder='static-256'): pass",
        "quota = getattr(options, 'quota', 10 << 30)",
    ],
)
def test_a_default_is_found(code: str) -> None:
    """However it is stated."""
    assert len(repeated(code)) == 1


def test_the_limits_of_attacks_are_the_defaults() -> None:
    """The archive of attacks stands alone, so that it repeats them."""
    assert {name: getattr(LimitsTable(), name) for name in DEFAULT_LIMITS} == DEFAULT_LIMITS
