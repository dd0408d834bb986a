"""Finds the rules: all modules in the packages below that are named after a code."""

import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from agentbox.manifest.findings import SEVERITIES, Finding, Severity
from agentbox.manifest.rules.context import RuleContext

_MODULE: Final = re.compile(r"[ewi]\d{3}_[a-z0-9_]+")


@dataclass(frozen=True)
class Rule:
    """One rule, as declared in its file. `bad` and `good` extend a minimal valid manifest."""

    code: str
    severity: Severity
    since: str
    title: str
    reason: str
    reads: tuple[str, ...]
    bad: str
    good: str
    check: Callable[[RuleContext], Iterator[Finding]]
    each: tuple[str, ...] = (
        "",
    )  # maps: `check` is called once per entry of each; "" = once for the manifest
    last: bool = False  # runs after the others and sees the keys of their errors
    environment: bool = False  # depends on the environment
    context: Mapping[str, Any] | None = None  # further input of BAD and GOOD: environment, lock


@cache
def discover() -> Mapping[str, Rule]:
    """All rules by code, sorted."""
    package = __name__.rpartition(".")[0]
    names = (
        module.name
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
    )
    rules = (
        _rule(import_module(name)) for name in names if _MODULE.fullmatch(name.rpartition(".")[2])
    )
    return {rule.code: rule for rule in sorted(rules, key=lambda rule: rule.code[1:])}


def _rule(module: ModuleType) -> Rule:
    declared = vars(module)
    code = declared["CODE"]
    return Rule(
        code=code,
        severity=SEVERITIES[code[0]],
        since=declared["SINCE"],
        title=declared["TITLE"],
        reason=declared["REASON"],
        reads=declared["READS"],
        bad=declared["BAD"],
        good=declared["GOOD"],
        check=declared["check"],
        each=each if isinstance(each := declared.get("EACH", ""), tuple) else (each,),
        last=declared.get("LAST", False),
        environment=declared.get("ENVIRONMENT", False),
        context=declared.get("CONTEXT"),
    )
