"""The boot's lines on their way into a real journal."""

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.local_store import LocalStore

from agentbox.api.background.boot_events import BATCH, BootEvents
from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.core.paths import Paths

EIB = 1 << 60  # free bytes of a network file system; RFC 8785 carries no integer beyond 2^53 - 1


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path)
    made.run.mkdir(parents=True)
    return made


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Any]:
    store = LocalStore("events", "local-jsonl", tmp_path)
    yield await store.open()
    await store.close_all()


async def imported(boot_events: BootEvents) -> None:
    while await boot_events.import_new():
        continue


async def types(journal: Any) -> list[str]:
    found = (await journal.read(limit=1000)).events
    return [event.type for event in found if event.type.startswith("boot.")]


async def test_a_line_that_is_refused_for_good_holds_up_none(paths: Paths, journal: Any) -> None:
    """It is reported by name instead, in its place, once; what precedes and follows it is imported,
    also in later batches."""
    log = BootEventLog(paths, "b1", stream=io.StringIO())
    log.emit("BootstrapStarted")
    log.emit("WritableRootReady", path="/workspace", free_bytes=EIB)
    for _ in range(BATCH + 5):
        log.emit("PhaseCompleted", phase="1")
    boot_events = BootEvents(paths, "box", "b1", journal)
    await imported(boot_events)
    wanted = [
        "boot.bootstrap_started",
        "boot.event_refused",
        *["boot.phase_completed"] * (BATCH + 5),
    ]
    assert await types(journal) == wanted
    refused = (await journal.read(limit=1000)).events[-(BATCH + 6)]
    assert (refused.data["event"], refused.data["reason"]) == ("WritableRootReady", "validation")
    await imported(BootEvents(paths, "box", "b1", journal))
    assert await types(journal) == wanted


async def test_lines_that_come_later_follow(paths: Paths, journal: Any) -> None:
    """Each is imported once, in order."""
    log = BootEventLog(paths, "b1", stream=io.StringIO())
    boot_events = BootEvents(paths, "box", "b1", journal)
    log.emit("BootstrapStarted")
    await imported(boot_events)
    log.emit("ShutdownStarted", reason="x")
    await imported(boot_events)
    assert await types(journal) == ["boot.bootstrap_started", "boot.shutdown_started"]
