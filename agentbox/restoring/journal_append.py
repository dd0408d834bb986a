"""Appends to the journal of a state that no box has open."""

from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from agentbox.adapters.events.local_jsonl import LocalJsonlEvents
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.contracts.events import Event, NewEvent
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.manifest.slot_options import JournalOptions
from agentbox.manifest.types import Size

_OPEN_SECONDS: Final = 600.0
_ROOM: Final = 4 << 10  # KiB for the record, whatever `adapters.events.max_size` is


async def append(paths: Paths, box: str, event: NewEvent) -> Event:
    """Appends one event of the box itself. Raises AdapterError, OSError."""
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
