"""Each local store on a full file system: `python -m support.full_disk FOLDER`, one line
of JSON per slot.

FOLDER is a small tmpfs that the caller mounted.
"""

import asyncio
import errno
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentbox_testkit.local_store import LocalStore

from agentbox.adapters.runtime.adapter import SlotName
from agentbox.box.boot.steps.p1_roots import MIN_FREE_BYTES
from agentbox.contracts.beads import BeadSpec
from agentbox.contracts.events import NewEvent
from agentbox.core.slot_errors import AdapterError

CREATOR = "urn:agentbox:box:test"
SlotCall = Callable[[Any], Awaitable[Any]]
STEPS: dict[SlotName, tuple[str, SlotCall, SlotCall]] = {
    "beads": (
        "local-sqlite",
        lambda slot: slot.create_epic(BeadSpec(title="x", creator=CREATOR, body="x" * 20_000)),
        lambda slot: slot.list(limit=1),
    ),
    "memory": (
        "local-sqlite",
        lambda slot: slot.store("k", "word " * 5000),
        lambda slot: slot.retrieve("k"),
    ),
    "pods": (
        "local-fs",
        lambda slot: slot.write("a", b"x" * 20_000),
        lambda slot: slot.read("a"),
    ),
    "events": (
        "local-jsonl",
        lambda slot: slot.append([NewEvent(type="test.work", data={"fill": "x" * 20_000})]),
        lambda slot: slot.read(),
    ),
}


async def outcome(step: Awaitable[Any]) -> str:
    """Return `ok`, or the error's code and status."""
    try:
        await step
    except AdapterError as error:
        return f"{error.code} {error.status}"
    return "ok"


async def exercise_slot(slot: SlotName, directory: Path) -> dict[str, Any]:
    """Fills the disk under an open store, frees space, and opens it with the free space that a boot
    requires.
    """
    impl, write, read = STEPS[slot]
    store = LocalStore(slot, impl, directory)
    adapter = await store.open()
    report: dict[str, Any] = {"slot": slot, "before": await outcome(write(adapter))}
    fill(directory / "ballast")
    report["write"] = [await outcome(write(adapter)) for _ in range(3)]
    report["read"] = await outcome(read(adapter))
    health = await adapter.health()
    report["health"] = [health.state, health.detail]
    (directory / "ballast").unlink()
    report["after"] = [await outcome(write(adapter)), (await adapter.health()).state]
    await store.close_all()
    fill(directory / "ballast")
    os.truncate(directory / "ballast", (directory / "ballast").stat().st_size - MIN_FREE_BYTES)
    reopened = await store.open()
    report["opened"] = [await outcome(read(reopened)), (await reopened.health()).state]
    await store.close_all()
    (directory / "ballast").unlink()
    return report


def fill(path: Path) -> None:
    """Writes until the disk is full."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


async def main(directory: Path) -> None:
    for slot in STEPS:
        print(json.dumps(await exercise_slot(slot, directory)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
