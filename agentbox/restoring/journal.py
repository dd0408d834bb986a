"""The journal of a restored state: verified, and continued as a fork."""

import asyncio
import time

from agentbox.adapters.events.journal.epoch import write_epoch
from agentbox.adapters.events.journal.verify import verify
from agentbox.contracts.backups import Cut
from agentbox.contracts.events import Event, NewEvent
from agentbox.core.paths import Paths
from agentbox.restoring.errors import damaged
from agentbox.restoring.journal_append import append


def check(snapshot: str, paths: Paths, cut: Cut) -> None:
    """Verifies every record, link and seal up to the record of the cut. Raises AgentboxError
    (exit 1).
    """
    directory = paths.slot("events")
    if not directory.is_dir() or not any(directory.glob("*.jsonl")):
        if cut.seq:
            raise damaged(snapshot, "state/events", f"has no journal with record {cut.seq}")
        return
    report = verify(directory)
    if (error := report.error) is not None:
        raise damaged(snapshot, f"state/events/{error.file}", error.reason)
    if cut.seq and report.last_seq != cut.seq:
        raise damaged(
            snapshot, "state/events", f"ends at record {report.last_seq}, the cut at {cut.seq}"
        )


def next_epoch(cut: Cut) -> int:
    """Of the fork: seconds since 1970, so that two restores of one snapshot, anywhere, are two
    origins; above that of the snapshot.
    """
    return max(cut.epoch + 1, int(time.time()))


def continue_as_fork(paths: Paths, box: str, cut: Cut, epoch: int) -> Event:
    """Writes the epoch, then `journal.restored`. Raises AdapterError, OSError."""
    directory = paths.slot("events")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_epoch(directory, epoch)
    event = NewEvent(
        type="journal.restored", data={"snapshot": cut.id, "seq": cut.seq, "epoch": epoch}
    )
    return asyncio.run(append(paths, box, event))
