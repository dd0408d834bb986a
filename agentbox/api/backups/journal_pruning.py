"""Removes the oldest segments of the journal of a running box once two verified snapshots have
them.
"""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

import structlog

from agentbox.adapters.runtime.journal_pruning import PrunableJournal, SealedSegment
from agentbox.adapters.runtime.slots import Slots
from agentbox.api.backups.verification import SnapshotVerifier
from agentbox.contracts.backups import Snapshot
from agentbox.core import clock

COPIES: Final = 2  # verified snapshots that have a segment
_TRIES: Final = 10  # while a reader needs all files, such as a backup
_PAUSE_SECONDS: Final = 1.0
_log = structlog.get_logger()


async def prune_journal(
    slots: Slots, verifier: SnapshotVerifier, days: int, principal: str
) -> None:
    """Removes sealed segments of more than `days` days ago from the oldest on, up to the first that
    fewer than two verified snapshots have. Raises AdapterError, OSError.
    """
    journal = slots.serving("events")
    if not isinstance(journal, PrunableJournal):
        return
    day = (clock.now() - timedelta(days=days)).date().isoformat()
    old = await journal.sealed_before(day)
    if not old:
        return
    heads = [head for head in await verifier.heads() if verifier.record.verified_at(head.id)]
    kept_twice = _leading(old, heads)
    if not kept_twice:
        return
    last = kept_twice[-1].last_seq
    for _ in range(_TRIES):
        first = await journal.remove_through(last)
        if first > last:
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    else:
        _log.warning("the journal is not pruned", reason="its files are being read")
        return
    await slots.journal.record(
        "journal.pruned",
        {"first_seq": first, "segments": [row.name for row in kept_twice], "by": principal},
    )


def _leading(old: Iterable[SealedSegment], heads: Iterable[Snapshot]) -> list[SealedSegment]:
    """The segments before the first one that too few snapshots have, with those very bytes."""
    members = [{row.path: row.sha256 for row in head.members} for head in heads]
    found: list[SealedSegment] = []
    for segment in old:
        path = f"state/events/{segment.name}"
        if sum(rows.get(path) == segment.sha256 for rows in members) < COPIES:
            break
        found.append(segment)
    return found
