"""Encodes authorizations as plain JSON data, and decodes them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentbox.core.records.plain import build, to_plain
from agentbox.policy.rights.authorization import Ancestor, Authorization, Budget


def authorization_to_json(authorization: Authorization) -> dict[str, Any]:
    """Plain data."""
    data: dict[str, Any] = to_plain(authorization)
    return data


def authorization_from_json(data: Mapping[str, Any]) -> Authorization:
    """The inverse. Raises ValueError naming the missing or unknown field."""
    rows = tuple(build(Ancestor, {**row, "budget": None}, "ancestors") for row in data["ancestors"])
    ancestors = tuple(
        replace(row, budget=budget_from_json(item["budget"]))
        for row, item in zip(rows, data["ancestors"], strict=True)
    )
    authorization = build(Authorization, {**data, "budget": None, "ancestors": ()}, "authorization")
    assert isinstance(authorization, Authorization)
    return replace(authorization, budget=budget_from_json(data["budget"]), ancestors=ancestors)


def budget_from_json(data: Mapping[str, int] | None) -> Budget | None:
    """None stays None."""
    return None if data is None else Budget(**data)
