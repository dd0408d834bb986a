"""Standings as plain JSON data and back."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentbox.core.records.plain import build, plain
from agentbox.policy.rights.standing import Ancestor, Budget, Standing


def standing_to_json(standing: Standing) -> dict[str, Any]:
    """Plain data."""
    found: dict[str, Any] = plain(standing)
    return found


def standing_from_json(data: Mapping[str, Any]) -> Standing:
    """The inverse. Raises ValueError naming the field that is missing or unknown."""
    rows = tuple(build(Ancestor, {**row, "budget": None}, "ancestors") for row in data["ancestors"])
    ancestors = tuple(
        replace(row, budget=budget_from_json(given["budget"]))
        for row, given in zip(rows, data["ancestors"], strict=True)
    )
    standing = build(Standing, {**data, "budget": None, "ancestors": ()}, "standing")
    assert isinstance(standing, Standing)
    return replace(standing, budget=budget_from_json(data["budget"]), ancestors=ancestors)


def budget_from_json(data: Mapping[str, int] | None) -> Budget | None:
    """None stays None."""
    return None if data is None else Budget(**data)
