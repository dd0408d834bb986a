"""Restricts a child's grants to those of its parent."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from agentbox.policy.policy import Policy, PolicyRule
from agentbox.policy.rights.authorization import Budget, Right
from agentbox.policy.rights.grant_set import Grant, GrantSet
from agentbox.policy.rights.rights import find_allowing_right, to_policy

N = TypeVar("N", int, float)
_BRANCH: Final = "/.branch"  # a path that no pattern names: its contents are a copy


class ExcessRights(Exception):
    """A child would have `rights`, as texts, that its parent does not have."""

    def __init__(self, rights: Sequence[str]) -> None:
        super().__init__("; ".join(rights))
        self.rights = tuple(rights)


def may_start(parent: GrantSet, name: str, now: float) -> bool:
    """Whether an agent with these grants may itself start the agent of that table."""
    return bool(find_allowing_right(parent.checked_rights(now), "agent", "spawn", name))


def restrict_to_parent(child: GrantSet, parent: GrantSet, now: float) -> GrantSet:
    """The child with inherited expiries, approvals, and a budget within the parent's. Raises
    ExcessRights for what the parent does not have now."""
    if excess := _excess_rights(child, parent, now):
        raise ExcessRights(excess)
    parent_grants = [grant for grant in parent.grants if not grant.has_ended(now)]
    return replace(
        child,
        grants=tuple(_limit_expiry(grant, parent_grants) for grant in child.grants),
        secrets=tuple(_limit_secret(secret, parent.secrets) for secret in child.secrets),
        approval_required=tuple(
            dict.fromkeys((*parent.approval_required, *child.approval_required))
        ),
        budget=_limit_budget(child.budget, parent.budget),
    )


def uncovered_grants(child: GrantSet, parent: GrantSet, now: float) -> tuple[Grant, ...]:
    """The child's grants that its parent no longer covers and that are not checked at each use:
    kernel-enforced ones and secrets.
    """
    parent_policy = _comparison_policy(parent, parent, now)
    parent_secrets = _secret_names(parent.secrets, now)
    kernel_grants = [
        grant
        for grant in child.grants
        if grant.is_kernel_enforced and grant.right.mode == "allow" and not grant.has_ended(now)
    ]
    uncovered = [
        grant
        for grant in kernel_grants
        if _comparison_policy(replace(child, grants=(grant,)), parent, now).permissions_beyond(
            parent_policy
        )
    ]
    return (
        *uncovered,
        *(
            secret
            for secret in child.secrets
            if not secret.has_ended(now) and secret.right.patterns[0] not in parent_secrets
        ),
    )


def _comparison_policy(grant_set: GrantSet, parent: GrantSet, now: float) -> Policy:
    """Bound for comparison: $TMP, $TOOLCHAIN and $COMMAND stay, since each agent has its own. A
    branch differs from the workspace.
    """
    rights = (
        *grant_set.checked_rights(now),
        *(
            grant.right
            for grant in grant_set.grants
            if grant.is_kernel_enforced and not grant.has_ended(now)
        ),
    )
    branch = grant_set.workspace == parent.workspace == "branch"
    workspace = f"{_BRANCH}{grant_set.workspace_dir}" if branch else grant_set.workspace_dir
    return to_policy(rights).with_bindings({"$WORKSPACE": (workspace,)})


def _excess_rights(child: GrantSet, parent: GrantSet, now: float) -> list[str]:
    excess = _comparison_policy(child, parent, now).permissions_beyond(
        _comparison_policy(parent, parent, now)
    )
    secrets = _secret_names(child.secrets, now) - _secret_names(parent.secrets, now)
    return [*map(str, excess), *(f"secret {name}" for name in secrets)]


def _limit_expiry(grant: Grant, parent_grants: Sequence[Grant]) -> Grant:
    """Limits the expiry to that of the covering parent grants."""
    expiries = list(_parent_expiries(grant.right, parent_grants))
    if grant.right.mode == "deny" or not expiries or None in expiries:
        return grant
    latest = max(expiry for expiry in expiries if expiry is not None)
    current = grant.right.expires_at
    return replace(
        grant,
        right=replace(grant.right, expires_at=latest if current is None else min(current, latest)),
    )


def _limit_secret(secret: Grant, parent_secrets: Sequence[Grant]) -> Grant:
    """Limits a secret to expiry, count and rate of the parent's; uses count there too."""
    for parent_secret in parent_secrets:
        if parent_secret.right.patterns == secret.right.patterns:
            secret = replace(
                secret,
                right=limit_right(
                    secret.right,
                    parent_secret.right.expires_at,
                    parent_secret.right.uses,
                    parent_secret.right.rate,
                ),
            )
    return secret


def limit_right(
    right: Right, expires_at: float | None, uses: int | None, rate: int | None
) -> Right:
    """The right within these bounds; None = no bound."""
    return replace(
        right,
        expires_at=_minimum(right.expires_at, expires_at),
        uses=_minimum(right.uses, uses),
        rate=_minimum(right.rate, rate),
    )


def _minimum(first: N | None, second: N | None) -> N | None:
    values = [value for value in (first, second) if value is not None]
    return min(values, default=None)


def _parent_expiries(right: Right, parent_grants: Sequence[Grant]) -> Iterator[float | None]:
    rule = _rule(right)
    for grant in parent_grants:
        is_same_operation = (
            grant.right.scope == right.scope and grant.right.operations == right.operations
        )
        if (
            grant.right.mode == "allow"
            and is_same_operation
            and _covers(_rule(grant.right), rule, right.operations[0])
        ):
            yield grant.right.expires_at


def _covers(outer: PolicyRule, inner: PolicyRule, operation: str) -> bool:
    pairs = [
        (first, second)
        for first in outer.patterns[operation]
        for second in inner.patterns[operation]
    ]
    return any(type(first) is type(second) and first.covers(second) for first, second in pairs)


def _rule(right: Right) -> PolicyRule:
    return to_policy((right,)).rules[right.scope][0]


def _limit_budget(child: Budget | None, parent: Budget | None) -> Budget | None:
    """Limits each value to the parent's; the window is at least as long."""
    if child is None or parent is None:
        return None
    return Budget(
        max_tokens=min(child.max_tokens, parent.max_tokens),
        max_calls=min(child.max_calls, parent.max_calls),
        window_seconds=max(child.window_seconds, parent.window_seconds),
        max_concurrent=min(child.max_concurrent, parent.max_concurrent),
        weight=min(child.weight, parent.weight),
        max_cost=_minimum(child.max_cost, parent.max_cost),
    )


def _secret_names(secrets: Sequence[Grant], now: float) -> frozenset[str]:
    return frozenset(
        text for secret in secrets if not secret.has_ended(now) for text in secret.right.patterns
    )
