"""The policy of an agent: a built-in profile or a `[policies.<name>]` table, bound to the agent's
own table, below the ceiling `egress.allow`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agentbox.policy.patterns.base import ScopePattern
from agentbox.policy.patterns.hosts import HostPattern
from agentbox.policy.patterns.scopes import parse
from agentbox.policy.policy import Bindings, Policy, PolicyRule
from agentbox.policy.profiles import UNRESTRICTED, UnresolvedPolicy, chain, effective_policy


@dataclass(frozen=True)
class ResolvedPolicy:
    """A policy and the built-in profile at the end of its chain."""

    policy: Policy
    root: str

    @property
    def is_unrestricted(self) -> bool:
        """The only profile without a ceiling."""
        return self.root == UNRESTRICTED


def resolve(name: str, policies: Mapping[str, UnresolvedPolicy]) -> ResolvedPolicy:
    """Resolves a name; `policies` are hashable. Raises ChainError for an unknown name, PatternError
    for an invalid pattern.
    """
    return _resolve(name, tuple(policies.items()))


def bind_policy(resolved: ResolvedPolicy, bindings: Bindings, ceiling: Sequence[str]) -> Policy:
    """Replaces variables, removing those without a value, and limits net targets to `ceiling`, the
    patterns of `egress.allow`. Raises PatternError.
    """
    policy = resolved.policy.with_bindings({"$EGRESS": tuple(ceiling), **bindings})
    if resolved.is_unrestricted:
        return policy
    return replace(
        policy,
        rules={
            **policy.rules,
            "net": tuple(limit_to_ceiling(policy.rules.get("net", ()), ceiling)),
        },
    )


def limit_to_ceiling(rules: Iterable[PolicyRule], ceiling: Sequence[str]) -> Iterator[PolicyRule]:
    """Limits net rules to `ceiling`. Denials and raw ports (`tcp`) are unchanged."""
    ceiling_patterns = [
        pattern for text in ceiling if isinstance(pattern := parse("net", text), HostPattern)
    ]
    for rule in rules:
        patterns = rule.patterns
        if rule.allow and "connect" in patterns:
            patterns = {
                **patterns,
                "connect": tuple(_intersect(patterns["connect"], ceiling_patterns)),
            }
        if any(patterns.values()):
            yield replace(rule, patterns=patterns)


def _intersect(
    patterns: Iterable[ScopePattern], ceiling_patterns: Sequence[HostPattern]
) -> Iterator[HostPattern]:
    """The intersection of each pair, once. Sets of hosts are nested or disjoint, so it is one
    pattern or none.
    """
    common: dict[HostPattern, None] = {}
    for pattern in patterns:
        for outer in ceiling_patterns:
            if not isinstance(pattern, HostPattern) or not pattern.overlaps(outer):
                continue
            narrower = pattern if outer.covers_host(pattern) else outer
            common[replace(narrower, port=pattern.port if outer.port is None else outer.port)] = (
                None
            )
    yield from common


@lru_cache(maxsize=64)
def _resolve(name: str, tables: tuple[tuple[str, UnresolvedPolicy], ...]) -> ResolvedPolicy:
    policies = dict(tables)
    return ResolvedPolicy(effective_policy(name, policies), chain(name, policies)[0])
