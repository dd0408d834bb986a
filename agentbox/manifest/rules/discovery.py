"""Finds the rules: every module of the packages below this one that is named after a code."""

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
    """One rule, as its file declares it. `bad` and `good` are laid over the smallest valid manifest."""

    code: str
    severity: Severity
    since: str
    title: str
    why: str
    reads: tuple[str, ...]
    bad: str
    good: str
    check: Callable[[RuleContext], Iterator[Finding]]
    each: tuple[str, ...] = (
        "",
    )  # maps: `check` is called once per entry of each; "" = once for the whole
    last: bool = False  # runs after the others and sees which keys their errors name
    environment: bool = False  # has a condition on the environment
    context: Mapping[str, Any] | None = None  # what else BAD and GOOD need: environment, lock


@cache
def discover() -> Mapping[str, Rule]:
    """Every rule by code, sorted."""
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
        why=declared["WHY"],
        reads=declared["READS"],
        bad=declared["BAD"],
        good=declared["GOOD"],
        check=declared["check"],
        each=each if isinstance(each := declared.get("EACH", ""), tuple) else (each,),
        last=declared.get("LAST", False),
        environment=declared.get("ENVIRONMENT", False),
        context=declared.get("CONTEXT"),
    )
