"""From a parent to its child: the child's rights lie within the parent's, and so does everything else that it holds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from agentbox.policy.policy import Policy, PolicyRule
from agentbox.policy.rights.holding import Grant, Holding
from agentbox.policy.rights.rights import as_policy
from agentbox.policy.rights.standing import Budget, Right

N = TypeVar("N", int, float)
_BRANCH: Final = "/.branch"  # a place that no pattern names: what lies there is a copy


def wider(child: Holding, parent: Holding, now: float) -> tuple[str, ...]:
    """What the child would hold and the parent does not hold now, in words. Empty = it may be started."""
    found = [str(grant) for grant in _policy(child, parent, now).beyond(_policy(parent, parent, now))]
    mine = _names(parent.secrets, now)
    found += [f"secret {name}" for name in _names(child.secrets, now) if name not in mine]
    return tuple(found)


def narrowed(child: Holding, parent: Holding, now: float) -> Holding:
    """The child with what carries over: ends of grants, approvals, and a budget within the parent's."""
    above = [grant for grant in parent.grants if not grant.over(now)]
    return replace(
        child,
        grants=tuple(_ending(grant, above) for grant in child.grants),
        secrets=tuple(_bounded(secret, parent.secrets) for secret in child.secrets),
        approval_required=tuple(dict.fromkeys((*parent.approval_required, *child.approval_required))),
        budget=_within(child.budget, parent.budget),
    )


def lost(child: Holding, parent: Holding, now: float) -> tuple[Grant, ...]:
    """The grants of a child that nothing of its parent covers any more, of those that cannot be checked at each use: what
    the kernel holds, and secrets."""
    held = _policy(parent, parent, now)
    mine = _names(parent.secrets, now)
    by_kernel = [
        grant for grant in child.grants if grant.by_kernel and grant.right.mode == "allow" and not grant.over(now)
    ]
    gone = [grant for grant in by_kernel if _policy(replace(child, grants=(grant,)), parent, now).beyond(held)]
    return (*gone, *(one for one in child.secrets if not one.over(now) and one.right.patterns[0] not in mine))


def _policy(holding: Holding, parent: Holding, now: float) -> Policy:
    """Bound for comparison: $TMP, $TOOLCHAIN and $COMMAND stay, each agent has its own. A branch is no workspace."""
    rights = (
        *holding.checked(now),
        *(grant.right for grant in holding.grants if grant.by_kernel and not grant.over(now)),
    )
    branch = holding.workspace == parent.workspace == "branch"
    place = f"{_BRANCH}{holding.workspace_dir}" if branch else holding.workspace_dir
    return as_policy(rights).bound({"$WORKSPACE": (place,)})


def _ending(grant: Grant, above: Sequence[Grant]) -> Grant:
    """No later than what it comes from."""
    ends = list(_ends(grant.right, above))
    if grant.right.mode == "deny" or not ends or None in ends:
        return grant
    end = max(one for one in ends if one is not None)
    own = grant.right.expires_at
    return replace(grant, right=replace(grant.right, expires_at=end if own is None else min(own, end)))


def _bounded(secret: Grant, above: Sequence[Grant]) -> Grant:
    """With the end, count and rate of the same secret above; a use is taken there as well."""
    for one in above:
        if one.right.patterns == secret.right.patterns:
            secret = replace(secret, right=least(secret.right, one.right.expires_at, one.right.uses, one.right.rate))
    return secret


def least(right: Right, expires_at: float | None, uses: int | None, rate: int | None) -> Right:
    """The right within these bounds as well; None = none."""
    return replace(
        right,
        expires_at=_least(right.expires_at, expires_at),
        uses=_least(right.uses, uses),
        rate=_least(right.rate, rate),
    )


def _least(one: N | None, other: N | None) -> N | None:
    found = [value for value in (one, other) if value is not None]
    return min(found, default=None)


def _ends(right: Right, above: Sequence[Grant]) -> Iterator[float | None]:
    mine = _rule(right)
    for grant in above:
        same = grant.right.scope == right.scope and grant.right.operations == right.operations
        if grant.right.mode == "allow" and same and _covers(_rule(grant.right), mine, right.operations[0]):
            yield grant.right.expires_at


def _covers(wide: PolicyRule, narrow: PolicyRule, operation: str) -> bool:
    pairs = [(one, other) for one in wide.patterns[operation] for other in narrow.patterns[operation]]
    return any(type(one) is type(other) and one.covers(other) for one, other in pairs)


def _rule(right: Right) -> PolicyRule:
    return as_policy((right,)).rules[right.scope][0]


def _within(child: Budget | None, parent: Budget | None) -> Budget | None:
    """No more of anything than the parent has in its own window; a window is no shorter."""
    if child is None or parent is None:
        return None
    return Budget(
        max_tokens=min(child.max_tokens, parent.max_tokens), max_calls=min(child.max_calls, parent.max_calls),
        window_seconds=max(child.window_seconds, parent.window_seconds),
        max_concurrent=min(child.max_concurrent, parent.max_concurrent), weight=min(child.weight, parent.weight),
    )  # fmt: skip


def _names(secrets: Sequence[Grant], now: float) -> frozenset[str]:
    return frozenset(text for one in secrets if not one.over(now) for text in one.right.patterns)
