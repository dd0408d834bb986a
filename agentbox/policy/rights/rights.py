"""Converts policies to rights with ids, and back; finds the right that decides on a request."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from agentbox.policy.patterns.scopes import Scope, parse
from agentbox.policy.policy import Policy, PolicyRule
from agentbox.policy.rights.authorization import Right

_ID_BYTES = 12


def new_id() -> str:
    """A random, unguessable id."""
    return f"g_{secrets.token_urlsafe(_ID_BYTES)}"


def build_rights(policy: Policy, ids: Callable[[], str] = new_id) -> tuple[Right, ...]:
    """All rules in order; an allow rule becomes one right per operation and pattern, so that each
    can be revoked.
    """
    return tuple(right for scope in policy.rules for right in _scope_rights(policy, scope, ids))


def _scope_rights(policy: Policy, scope: Scope, ids: Callable[[], str]) -> Iterator[Right]:
    for rule in policy.rules[scope]:
        for operation, patterns in rule.patterns.items():
            texts = tuple(map(str, patterns))
            for group in ((text,) for text in texts) if rule.allow else (texts,):
                if group:
                    yield Right(
                        grant_id=ids(),
                        scope=scope,
                        mode="allow" if rule.allow else "deny",
                        operations=(operation,),
                        patterns=group,
                        methods=rule.methods,
                        paths=rule.paths,
                    )


@lru_cache(maxsize=256)  # one entry per agent; ended ones drop out
def to_policy(rights: tuple[Right, ...]) -> Policy:
    """The rights as rules; `origin` of a rule is the id of its right. Raises PatternError."""
    by_scope: dict[Scope, list[PolicyRule]] = {}
    for right in rights:
        by_scope.setdefault(right.scope, []).append(_rule(right))
    return Policy("", {scope: tuple(rules) for scope, rules in by_scope.items()})


def find_allowing_right(
    rights: tuple[Right, ...],
    scope: Scope,
    operation: str,
    value: str,
    *,
    method: str = "",
    path: str = "",
) -> str:
    """The id of the right that allows a request; "" if none does. Values as in `Policy.decide`."""
    policy = to_policy(rights)
    if not policy.decide(scope, operation, value, method=method, path=path):
        return ""
    rule = policy.deciding_rule(scope, operation, value, method=method, path=path)
    return rule.origin if rule else ""


@lru_cache(maxsize=4096)
def _rule(right: Right) -> PolicyRule:
    patterns = {
        name: tuple(parse(right.scope, text, name) for text in right.patterns)
        for name in right.operations
    }
    return PolicyRule(
        allow=right.mode == "allow",
        patterns=patterns,
        methods=right.methods,
        paths=right.paths,
        origin=right.grant_id,
    )


def filter_scopes(rights: Iterable[Right], *scopes: Scope) -> tuple[Right, ...]:
    """The rights of some scopes, in order."""
    return tuple(right for right in rights if right.scope in scopes)
