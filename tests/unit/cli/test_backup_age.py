"""The line of `status` about backups."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentbox.core import clock
from agentbox.host.cli.backup_age import last_backup

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def row(state: str, age: timedelta, **changes: Any) -> dict[str, Any]:
    values = {"reason": "", "partial": [], "verified_at": None, **changes}
    return {"state": state, "time": clock.to_wire(NOW - age), **values}


HOURS, DAYS = timedelta(hours=3, minutes=20), timedelta(days=2)
VERIFIED = row("created", HOURS, verified_at=clock.to_wire(NOW))


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([], "none"),
        ([VERIFIED], "3 h ago, verified"),
        ([row("created", timedelta(seconds=4))], "4 s ago"),
        ([row("created", DAYS, partial=["memory"])], "2 d ago, without memory"),
        ([row("staging", timedelta()), VERIFIED], "3 h ago, verified; one is being made"),
        (
            [row("failed", timedelta(minutes=5), reason="it is full"), VERIFIED],
            "3 h ago, verified; 5 min ago one failed: it is full",
        ),
        ([row("failed", DAYS, reason="killed")], "none; 2 d ago one failed: killed"),
    ],
)
def test_the_line(items: list[dict[str, Any]], text: str) -> None:
    """The newest that is there, and what came after it."""
    assert last_backup({"items": items}, NOW) == text


CHECKED = {"checked_at": clock.to_wire(NOW - timedelta(hours=5))}


@pytest.mark.parametrize(
    ("backups", "text"),
    [
        ({"items": [], **CHECKED}, "none"),
        ({"items": [VERIFIED], **CHECKED}, "3 h ago, verified; repository checked 5 h ago"),
        (
            {"items": [VERIFIED, row("created", DAYS, faults=["a: is missing"])], **CHECKED},
            "3 h ago, verified; damaged: a: is missing",
        ),
        (
            {"items": [VERIFIED], "faults": ["b: is damaged", "c: is missing"], **CHECKED},
            "3 h ago, verified; damaged: b: is damaged and 1 more",
        ),
    ],
)
def test_the_daily_verification(backups: dict[str, Any], text: str) -> None:
    """When it was done, or what is damaged."""
    assert last_backup(backups, NOW) == text
