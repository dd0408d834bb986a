"""The rights of a resumed agent: those of now, without what was revoked."""

from typing import Any

from agentbox.policy.rights.authorization import Right
from agentbox.policy.rights.grant_set import Grant, GrantSet
from agentbox.policy.rights.renewal import without_revoked


def grant(grant_id: str, *patterns: str, revoked: bool = False, **right: Any) -> Grant:
    fields = {"scope": "tool", "mode": "allow", "operations": ("call",), **right}
    return Grant(right=Right(grant_id=grant_id, patterns=patterns, **fields), revoked=revoked)


def states(found: GrantSet) -> dict[str, bool]:
    """By id, whether it is revoked."""
    return {one.grant_id: one.revoked for one in found.all_grants()}


def test_an_equal_or_wider_right_is_revoked_again() -> None:
    """If it shares an operation and a pattern; others are as new."""
    old = GrantSet(grants=(grant("1", "a", revoked=True), grant("2", "b")))
    new = GrantSet(
        grants=(
            grant("3", "a"),
            grant("4", "a", "c"),
            grant("5", "b"),
            grant("6", "a", scope="llm"),
            grant("7", "a", operations=("other",)),
            grant("8", "a", mode="deny"),
        )
    )
    assert states(without_revoked(new, old)) == {
        "3": True, "4": True, "5": False, "6": False, "7": False, "8": False,
    }  # fmt: skip


def test_a_revoked_right_that_nothing_repeats_stays_a_denial() -> None:
    """So a wider pattern does not bring it back; also over several resumptions."""
    old = GrantSet(grants=(grant("1", "pod/read", revoked=True),))
    once = without_revoked(GrantSet(grants=(grant("2", "*"),)), old)
    twice = without_revoked(GrantSet(grants=(grant("3", "*"),)), once)
    assert states(twice) == {"3": False, "1": True}
    assert [(right.mode, right.patterns) for right in twice.checked_rights(0)] == [
        ("allow", ("*",)), ("deny", ("pod/read",)),
    ]  # fmt: skip


def test_secrets_are_compared_with_secrets() -> None:
    """A secret that was revoked is not handed over again."""
    old = GrantSet(secrets=(grant("1", "KEY", scope="env", operations=("read",), revoked=True),))
    new = GrantSet(secrets=(grant("2", "KEY", scope="env", operations=("read",)),))
    assert states(without_revoked(new, old)) == {"2": True}
