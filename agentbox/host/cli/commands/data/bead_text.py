"""Beads as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.table import print_fields, print_table

_HIDDEN_WHEN = {"priority": 5, "overlap": "skip", "max_attempts": 5, "attempts": 0}


def title_of(bead: Mapping[str, Any]) -> str:
    """Its title, on one line."""
    return escape_invisible(bead["title"])[:80]


def print_beads(cli: CliContext, beads: list[Any]) -> None:
    """One line each."""
    cli.out.document(beads)
    print_table(
        cli.out,
        [
            (
                bead["id"],
                bead["kind"],
                bead["outcome"] or bead["status"],
                bead["assignee"],
                bead["title"],
            )
            for bead in beads
        ],
        whole=(0,),
    )


def print_bead(cli: CliContext, bead: Mapping[str, Any]) -> None:
    """One field a line, but for usual values."""
    cli.out.document(bead)
    fields = []
    for name, value in bead.items():
        if _HIDDEN_WHEN.get(name) == value:
            continue
        is_text = value is None or (isinstance(value, str) and name != "result")
        plain = value if is_text else json.dumps(value, ensure_ascii=False)
        fields.append((name, "" if value in ([], {}) else plain))
    print_fields(cli.out, fields)
