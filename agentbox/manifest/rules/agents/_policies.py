"""Agents and the policies that hold for them, read through the view so that a withdrawn part is noticed."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentbox.manifest.rules.context import View
from agentbox.manifest.tables.policies import Policy as Written
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.patterns.scopes import SCOPES, Scope, parse
from agentbox.policy.policy import Policy, WrittenRule, make
from agentbox.policy.profiles import ChainError, chain, profiles, tables_of


@dataclass(frozen=True)
class _Read(Mapping[str, Written]):
    """The policies of a manifest; each look at one is a read of its base."""

    view: View

    def __contains__(self, name: object) -> bool:
        return self.view.has("policies", str(name))

    def __getitem__(self, name: str) -> Written:
        self.view[f"policies.{name}.base"]
        return self.view.model.policies[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.view.names("policies"))

    def __len__(self) -> int:
        return len(self.view.names("policies"))


def chain_of(view: View, name: str) -> tuple[str, ...]:
    """The names from the built-in profile to this one. Raises ChainError."""
    return chain(name, _Read(view))


def resolves(view: View, name: str) -> bool:
    """Whether a profile or policy name leads to a built-in profile; E301 reports one that does not."""
    try:
        return bool(chain_of(view, name))
    except ChainError:
        return False


def policy_of(view: View, name: str, *scopes: Scope) -> Policy:
    """The effective policy of a name that resolves; only these scopes of it may be looked at.

    A text that is no pattern is left out: E303 reports it.
    """
    names = chain_of(view, name)
    for step in names[1:]:
        for scope in scopes or SCOPES:
            view[f"policies.{step}.{scope}"]
    made = view.given.policies
    made.setdefault(names[0], profiles()[names[0]])
    for below, step in itertools.pairwise(names):
        if step not in made:
            made[step] = make(step, _patterns_only(view.model.policies[step]), made[below])
    return made[name]


def bound_policy(view: View, agent: str, *scopes: Scope) -> Policy | None:
    """The policy of an agent with its own lists in place of the variables; None when its profile does not resolve.

    $COMMAND, $TMP and $TOOLCHAIN stay: each agent has its own.
    """
    profile = view[f"agents.{agent}.profile"]
    if not resolves(view, profile):
        return None
    return policy_of(view, profile, *scopes).bound(_bindings(view, agent, scopes or SCOPES))


def enabled_agents(view: View) -> tuple[str, ...]:
    """The agents that may be started."""
    return tuple(name for name in view.names("agents") if view[f"agents.{name}.enabled"])


def fits(scope: Scope, text: str, operation: str = "") -> bool:
    """Whether a text is a pattern of the scope."""
    try:
        parse(scope, text, operation)
    except PatternError:
        return False
    return True


def _bindings(view: View, agent: str, scopes: tuple[Scope, ...]) -> dict[str, list[str]]:
    table = f"agents.{agent}"
    found: dict[str, list[str]] = {}
    if ("fs" in scopes or "exec" in scopes) and (place := view[f"{table}.workspace_dir"]):
        found["$WORKSPACE"] = [place]
    if "net" in scopes:
        found["$EGRESS"] = [text for text in view["egress.allow"] if fits("net", text)]
    if "env" in scopes:
        found["$ENV"] = list(view[f"{table}.env"])
    if "llm" in scopes:
        found["$PROVIDER"] = [name for name in [view[f"{table}.provider"]] if name]
    if "agent" in scopes:
        found["$CHILDREN"] = list(view[f"{table}.children"])
    return found


def _patterns_only(policy: Written) -> dict[Scope, tuple[WrittenRule, ...]]:
    return {scope: tuple(_clean(scope, rules)) for scope, rules in tables_of(policy).items()}


def _clean(scope: Scope, rules: Any) -> Iterator[WrittenRule]:
    for rule in rules:
        texts = tuple(text for text in rule.patterns if all(fits(scope, text, name) for name in rule.operations))
        if texts:
            yield replace(rule, patterns=texts)
