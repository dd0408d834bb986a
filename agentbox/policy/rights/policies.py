"""The policy of an agent: the name of a built-in profile or of a `[policies.<name>]` table, bound to what the agent's own
table says, below the ceiling of `egress.allow`."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from agentbox.core.canonical import canonical_json
from agentbox.core.records.plain import build
from agentbox.manifest.tables.policies import Policy as Written
from agentbox.policy.patterns.base import Pattern
from agentbox.policy.patterns.hosts import HostPattern
from agentbox.policy.patterns.scopes import parse
from agentbox.policy.policy import Bindings, Policy, PolicyRule
from agentbox.policy.profiles import UNRESTRICTED, chain, effective

Tables = Mapping[str, Mapping[str, Any]]
"""`plan.policies`: the tables as written, by name."""


@dataclass(frozen=True)
class Resolved:
    """A policy and the built-in profile at the bottom of its chain."""

    policy: Policy
    root: str

    @property
    def unrestricted(self) -> bool:
        """The one profile that no ceiling holds."""
        return self.root == UNRESTRICTED


def resolve(name: str, policies: Tables) -> Resolved:
    """What that name means. Raises ChainError for a name that nothing has, PatternError for a bad pattern."""
    return _resolve(name, canonical_json(dict(policies)))


def bound(resolved: Resolved, bindings: Bindings, ceiling: Sequence[str]) -> Policy:
    """Variables replaced, those without a value by nothing; then every net target cut down to `ceiling`, the patterns of
    `egress.allow`. Raises PatternError."""
    policy = resolved.policy.bound({"$EGRESS": tuple(ceiling), **bindings})
    if resolved.unrestricted:
        return policy
    return replace(policy, rules={**policy.rules, "net": tuple(below(policy.rules.get("net", ()), ceiling))})


def below(rules: Iterable[PolicyRule], ceiling: Sequence[str]) -> Iterator[PolicyRule]:
    """What net rules leave when no more than `ceiling` may be reached. A denial stays whole; so does a raw port (`tcp`)."""
    most = [pattern for text in ceiling if isinstance(pattern := parse("net", text), HostPattern)]
    for rule in rules:
        patterns = rule.patterns
        if rule.allow and "connect" in patterns:
            patterns = {**patterns, "connect": tuple(_common(patterns["connect"], most))}
        if any(patterns.values()):
            yield replace(rule, patterns=patterns)


def _common(patterns: Iterable[Pattern], most: Sequence[HostPattern]) -> Iterator[HostPattern]:
    """Each pair's common part, once. Sets of hosts are nested or apart, so it is one pattern or none."""
    found: dict[HostPattern, None] = {}
    for pattern in patterns:
        for wide in most:
            if not isinstance(pattern, HostPattern) or not pattern.overlaps(wide):
                continue
            narrow = pattern if wide.covers_host(pattern) else wide
            found[replace(narrow, port=pattern.port if wide.port is None else wide.port)] = None
    yield from found


@lru_cache(maxsize=64)
def _resolve(name: str, text: bytes) -> Resolved:
    written = {key: build(Written, table, f"policies.{key}") for key, table in json.loads(text).items()}
    return Resolved(effective(name, written), chain(name, written)[0])
