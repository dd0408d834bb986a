"""The steps of an upgrade, in order; each is written before what it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from agentbox.host.generations.record import BAD, GOOD
from agentbox.host.generations.store import GenerationStore

PREPARED: Final = "prepared"  # the old generation is stopped, its stores are copied, the hold made
STARTING: Final = "starting"  # the new one starts, held, and is tried
CONFIRMED: Final = "confirmed"  # it is good: released, then marked
RETURNING: Final = "returning"  # it is not: the old one comes back
LEFT: Final = "left"  # it is not, and stays held: the operator decides
ROLLBACK: Final = "rollback"  # an earlier one comes back, long after the upgrade


def end_trial(store: GenerationStore) -> None:
    """Ends a trial because the box is taken down: what was not found good by then is bad, and what
    never started has no record.
    """
    trial = store.trial()
    if not trial:
        return
    number, previous, step = int(trial["number"]), int(trial["previous"]), trial["step"]
    current = store.current()
    rows = []
    for row in store.rows():
        if row.number != number or number == previous or step == ROLLBACK:
            rows.append(row)
        elif step == CONFIRMED:
            rows.append(replace(row, verdict=GOOD))
        elif step != PREPARED:
            reason = str(trial.get("reason", "")) or "the box was taken down in its trial"
            rows.append(replace(row, verdict=BAD, reason=reason))
    store.replace_all(rows, 0 if current is None else current.number, {})


def describe_left(trial: Mapping[str, Any]) -> str:
    """`generation 3 is not good, and was left as it is, held: <reason>`."""
    return f"generation {trial['number']} is not good, and was left as it is, held: " + str(
        trial.get("reason", "")
    )
