"""Ends, counts and rates that a caller lays on the grants of an agent it starts. They only take away."""

from collections.abc import Iterable
from dataclasses import replace

from agentbox.contracts.orchestrator import Constraint
from agentbox.core.slot_errors import ValidationError
from agentbox.policy.rights.holding import Grant, Holding
from agentbox.policy.rights.narrowing import least


def constrained(holding: Holding, constraints: Iterable[Constraint], now: float) -> Holding:
    """A secret is met by the scope env and its name. Raises ValidationError for a constraint that no grant meets, and for a
    count or rate on what the kernel holds, which counts nothing."""
    for at, one in enumerate(constraints):
        kept = [grant for grant in holding.grants if _meets(one, grant)]
        found = [*kept, *(secret for secret in holding.secrets if _meets(one, secret))]
        if not found:
            raise _invalid(at, "meets no grant of this policy")
        if (one.uses is not None or one.rate is not None) and any(grant.by_kernel for grant in kept):
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
    end = None if one.expires_s is None else now + one.expires_s
    return replace(grant, right=least(grant.right, end, one.uses, one.rate))


def _invalid(at: int, why: str) -> ValidationError:
    pointer = f"/constraints/{at}"
    return ValidationError(f"cannot take the spec: {pointer} {why}", errors=[{"pointer": pointer, "detail": why}])
