"""Repairs, each after a question; what was repaired is looked at again."""

from collections.abc import Callable

from agentbox.core.errors import AgentboxError
from agentbox.host.doctor.row import Repair, Row, Scorecard

Ask = Callable[[str], bool]
Tell = Callable[[str], None]


def repair(card: Scorecard, ask: Ask, tell: Tell) -> int:
    """Asks before each repair and makes those that were agreed to; returns how many were made."""
    made = 0
    for row, offered in _offers(card):
        if not ask(f"{row.name}: {row.said}\n{offered.question}"):
            tell(f"left as it is: {row.name}")
            continue
        try:
            tell(f"{row.name}: {offered.act()}")
            made += 1
        except AgentboxError as error:
            tell(f"{row.name}: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))
    return made


def _offers(card: Scorecard) -> list[tuple[Row, Repair]]:
    return [(row, row.repair) for row in card.rows if row.repair is not None]
