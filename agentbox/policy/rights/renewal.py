"""The rights of an agent that is resumed: those of now, without what was revoked before."""

from dataclasses import replace

from agentbox.policy.rights.grant_set import Grant, GrantSet


def without_revoked(new: GrantSet, old: GrantSet) -> GrantSet:
    """A new right that allows something of what an operator revoked in `old` is revoked too. A
    revoked right that no new one repeats stays, as a denial for the programs that check rights."""
    revoked = [grant for grant in old.all_grants() if grant.revoked]

    def renewed(grants: tuple[Grant, ...], previous: tuple[Grant, ...]) -> tuple[Grant, ...]:
        lost = [grant for grant in previous if grant.revoked]
        kept = [one for one in lost if not any(_overlap(one, grant) for grant in grants)]
        return (
            *(
                replace(grant, revoked=True)
                if any(_overlap(one, grant) for one in revoked)
                else grant
                for grant in grants
            ),
            *kept,
        )

    return replace(
        new,
        grants=renewed(new.grants, old.grants),
        secrets=renewed(new.secrets, old.secrets),
    )


def _overlap(revoked: Grant, grant: Grant) -> bool:
    """Whether both name one pattern for one operation."""
    one, other = revoked.right, grant.right
    return (
        one.scope == other.scope
        and other.mode == "allow"
        and not set(one.operations).isdisjoint(other.operations)
        and not set(one.patterns).isdisjoint(other.patterns)
    )
