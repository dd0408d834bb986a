"""A scorecard as plain data, for programs."""

from typing import Any

from agentbox.host.doctor.row import Scorecard


def plain(card: Scorecard) -> dict[str, Any]:
    """`fine` is what the exit code says."""
    return {
        "name": card.name, "fine": not card.failed, "counts": card.counts, "failed": [row.name for row in card.failed],
        "rows": [row.to_wire() for row in card.rows],
    }  # fmt: skip
