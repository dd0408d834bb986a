"""Agents and their policies, read through the context so that invalid parts are noticed."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.tables.policies import PolicyTable as Written
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.patterns.scopes import SCOPES, Scope, parse
from agentbox.policy.policy import Policy, PolicyRuleSpec, build_policy
from agentbox.policy.profiles import PolicyChainError, chain, profiles, rule_specs


@dataclass(frozen=True)
class _TrackedPolicies(Mapping[str, Written]):
    """The policies of a manifest; each access reads the base."""

    context: RuleContext

    def __contains__(self, name: object) -> bool:
        return self.context.has("policies", str(name))

    def __getitem__(self, name: str) -> Written:
        self.context[f"policies.{name}.base"]
        return self.context.model.policies[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.context.names("policies"))

    def __len__(self) -> int:
        return len(self.context.names("policies"))


def policy_chain(context: RuleContext, name: str) -> tuple[str, ...]:
    """The names from the built-in profile to this one. Raises ChainError."""
    return chain(name, _TrackedPolicies(context))


def is_resolvable(context: RuleContext, name: str) -> bool:
    """Whether a name leads to a built-in profile; E301 reports others."""
    try:
        return bool(policy_chain(context, name))
    except PolicyChainError:
        return False


def effective_policy(context: RuleContext, name: str, *scopes: Scope) -> Policy:
    """The effective policy of a resolvable name, for use with these scopes only. Invalid patterns
    are omitted: E303 reports them.
    """
    names = policy_chain(context, name)
    for name_in_chain in names[1:]:
        for scope in scopes or SCOPES:
            context[f"policies.{name_in_chain}.{scope}"]
    cache = context.inputs.policies
    cache.setdefault(names[0], profiles()[names[0]])
    for base, name_in_chain in itertools.pairwise(names):
        if name_in_chain not in cache:
            cache[name_in_chain] = build_policy(
                name_in_chain, _valid_rules(context.model.policies[name_in_chain]), cache[base]
            )
    return cache[name]


def agent_policy(context: RuleContext, agent: str, *scopes: Scope) -> Policy | None:
    """The policy of an agent with variables replaced by its own lists; None if its profile does not
    resolve. $COMMAND, $TMP and $TOOLCHAIN stay, since each agent has its own.
    """
    profile = context[f"agents.{agent}.profile"]
    if not is_resolvable(context, profile):
        return None
    return effective_policy(context, profile, *scopes).with_bindings(
        _bindings(context, agent, scopes or SCOPES)
    )


def enabled_agents(context: RuleContext) -> tuple[str, ...]:
    """The enabled agents."""
    return tuple(name for name in context.names("agents") if context[f"agents.{name}.enabled"])


def is_pattern(scope: Scope, text: str, operation: str = "") -> bool:
    """Whether a text is a valid pattern of the scope."""
    try:
        parse(scope, text, operation)
    except PatternError:
        return False
    return True


def _bindings(context: RuleContext, agent: str, scopes: tuple[Scope, ...]) -> dict[str, list[str]]:
    table = f"agents.{agent}"
    bindings: dict[str, list[str]] = {}
    if ("fs" in scopes or "exec" in scopes) and (workspace := context[f"{table}.workspace_dir"]):
        bindings["$WORKSPACE"] = [workspace]
    if "net" in scopes:
        bindings["$EGRESS"] = [text for text in context["egress.allow"] if is_pattern("net", text)]
    if "env" in scopes:
        bindings["$ENV"] = list(context[f"{table}.env"])
    if "llm" in scopes:
        bindings["$PROVIDER"] = [name for name in [context[f"{table}.provider"]] if name]
    if "tool" in scopes:
        bindings["$MCP"] = [f"mcp/{server}/*" for server in context[f"{table}.mcp"]]
    if "agent" in scopes:
        bindings["$CHILDREN"] = list(context[f"{table}.children"])
    return bindings


def _valid_rules(policy: Written) -> dict[Scope, tuple[PolicyRuleSpec, ...]]:
    return {scope: tuple(_keep_valid(scope, rules)) for scope, rules in rule_specs(policy).items()}


def _keep_valid(scope: Scope, rules: Any) -> Iterator[PolicyRuleSpec]:
    for rule in rules:
        texts = tuple(
            text
            for text in rule.patterns
            if all(is_pattern(scope, text, name) for name in rule.operations)
        )
        if texts:
            yield replace(rule, patterns=texts)
