"""Ends, counts and rates that a caller lays on the grants of an agent it starts. They only take away."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from agentbox.adapters.errors import ValidationError
from agentbox.adapters.orchestrator.contract import Constraint
from agentbox.grants.holding import Grant, Holding

N = TypeVar("N", int, float)


def constrained(holding: Holding, constraints: Iterable[Constraint], now: float) -> Holding:
    """Raises ValidationError for a constraint that no grant meets, and for a count or rate on what the kernel holds, which
    counts nothing."""
    for at, one in enumerate(constraints):
        found = [grant for grant in holding.grants if _meets(one, grant)]
        if not found:
            raise _invalid(at, "meets no grant of this policy")
        if (one.uses is not None or one.rate is not None) and any(grant.by_kernel for grant in found):
            raise _invalid(at, "counts what the kernel holds, which counts nothing; it may end (expires_s)")
        for grant in found:
            holding = holding.with_grant(_with(grant, one, now))
    return holding


def _meets(one: Constraint, grant: Grant) -> bool:
    right = grant.right
    return (
        right.mode == "allow"
        and right.scope == one.scope
        and (not one.operation or one.operation in right.operations)
        and (not one.pattern or one.pattern in right.patterns)
    )


def _with(grant: Grant, one: Constraint, now: float) -> Grant:
    right = grant.right
    end = None if one.expires_s is None else now + one.expires_s
    return replace(
        grant, right=replace(
            right, expires_at=_least(right.expires_at, end), uses=_least(right.uses, one.uses),
            rate=_least(right.rate, one.rate),
        ),
    )  # fmt: skip


def _least(one: N | None, other: N | None) -> N | None:
    found = [value for value in (one, other) if value is not None]
    return min(found, default=None)


def _invalid(at: int, why: str) -> ValidationError:
    pointer = f"/constraints/{at}"
    return ValidationError(f"cannot take the spec: {pointer} {why}", errors=[{"pointer": pointer, "detail": why}])
