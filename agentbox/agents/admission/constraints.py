"""Expiry, counts and rates that a caller sets on the grants of an agent. They only restrict."""

from collections.abc import Iterable
from dataclasses import replace

from agentbox.contracts.orchestrator import Constraint
from agentbox.core.slot_errors import ValidationError
from agentbox.policy.rights.grant_set import Grant, GrantSet
from agentbox.policy.rights.restriction import limit_right


def apply_constraints(
    grant_set: GrantSet, constraints: Iterable[Constraint], now: float
) -> GrantSet:
    """A secret is matched by scope env and its name. Raises ValidationError for a constraint that
    matches no grant, and for a count or rate on a grant that the kernel enforces, which cannot
    count."""
    for index, constraint in enumerate(constraints):
        matching_grants = [grant for grant in grant_set.grants if _matches(constraint, grant)]
        matching = [
            *matching_grants,
            *(secret for secret in grant_set.secrets if _matches(constraint, secret)),
        ]
        if not matching:
            raise _invalid(index, "matches no grant of this policy")
        if (constraint.uses is not None or constraint.rate is not None) and any(
            grant.is_kernel_enforced for grant in matching_grants
        ):
            raise _invalid(
                index, "cannot limit the uses of a grant that the kernel enforces; use expires_s"
            )
        for grant in matching:
            grant_set = grant_set.with_grant(_constrain(grant, constraint, now))
    return grant_set


def _matches(constraint: Constraint, grant: Grant) -> bool:
    right = grant.right
    return (
        right.mode == "allow"
        and right.scope == constraint.scope
        and (not constraint.operation or constraint.operation in right.operations)
        and (not constraint.pattern or constraint.pattern in right.patterns)
    )


def _constrain(grant: Grant, constraint: Constraint, now: float) -> Grant:
    end = None if constraint.expires_s is None else now + constraint.expires_s
    return replace(grant, right=limit_right(grant.right, end, constraint.uses, constraint.rate))


def _invalid(index: int, reason: str) -> ValidationError:
    pointer = f"/constraints/{index}"
    return ValidationError(
        f"invalid spec: {pointer} {reason}", errors=[{"pointer": pointer, "detail": reason}]
    )
