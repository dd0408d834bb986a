"""The journal of a restored state: verified, and continued as a fork."""

import asyncio
import time
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from agentbox.adapters.events.journal.epoch import write_epoch
from agentbox.adapters.events.journal.verify import verify
from agentbox.adapters.events.local_jsonl import LocalJsonlEvents
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.contracts.backups import Cut
from agentbox.contracts.events import Event, NewEvent
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.manifest.slot_options import JournalOptions
from agentbox.manifest.types import Size
from agentbox.restoring.errors import damaged

RESTORED: Final = "journal.restored"
_OPEN_SECONDS: Final = 600.0
_ROOM: Final = 4 << 10  # KiB for the record, whatever `adapters.events.max_size` is


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
    event = NewEvent(type=RESTORED, data={"snapshot": cut.id, "seq": cut.seq, "epoch": epoch})
    return asyncio.run(_append(paths, box, event))


async def _append(paths: Paths, box: str, event: NewEvent) -> Event:
    options = JournalOptions().changed(
        max_size=Size(f"{(_size(paths.slot('events')) >> 10) + _ROOM}KiB")
    )
    config = SlotConfig(
        slot="events", use="local-jsonl", required=True, paths=paths, options=options, box=box
    )
    journal = LocalJsonlEvents(config, Deps(metrics=Metrics(CollectorRegistry())))
    await journal.open(Deadline.after(_OPEN_SECONDS))
    try:
        with context.as_caller(context.CORE):
            return (await journal.append([event]))[0]
    finally:
        await journal.close()


def _size(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.glob("*.jsonl"))
