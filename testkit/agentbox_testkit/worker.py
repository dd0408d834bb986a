"""A process that works on a local store and prints each acknowledged item as a JSON line.

`python -m agentbox_testkit.worker SLOT IMPL PREFIX OPTIONS BOX WORK [ARGUMENT...]`: BOX is
`box_at_host`; the first line on stdin is the slot's credentials, as JSON. Tests kill it.
"""

import asyncio
import json
import os
import resource
import signal
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from agentbox.adapters.runtime.adapter import SlotName
from agentbox.contracts.beads import BeadFilter, BeadSpec
from agentbox.contracts.events import NewEvent
from agentbox.core.slot_errors import AdapterError, PreconditionFailed
from agentbox_testkit.local_store import LocalStore


def emit(data: Any) -> None:
    """Prints an acknowledged item."""
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


async def create_beads(adapter: Any, tasks: str = "8") -> None:
    """Creates epics in several tasks until killed."""

    async def create(task: int) -> None:
        number = 0
        while True:
            bead, _ = await adapter.create_epic(
                BeadSpec(title=f"{task}/{number}", creator="worker", data={"n": number})
            )
            emit({"id": bead.id, "title": bead.title})
            number += 1

    await asyncio.gather(*(create(task) for task in range(int(tasks))))


async def claim_all(adapter: Any, assignee: str) -> None:
    """Claims until nothing is ready."""
    while (claim := await adapter.claim_next(assignee, lease_id=str(uuid.uuid4()))) is not None:
        emit({"id": claim.bead.id})


async def drain(
    adapter: Any, assignee: str, closed_file: str, tasks: str = "4", lease_s: str = "5"
) -> None:
    """Prints that it is ready, waits for a line on stdin, then claims and closes in several tasks
    until no bead remains that could still have to be closed. Appends a line to `closed_file` for
    each closed bead, with the system's monotonic time: the write survives a kill and costs the
    reader nothing.
    """
    emit({"ready": True})
    await asyncio.to_thread(sys.stdin.readline)
    file = os.open(closed_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def work() -> None:
        while True:
            lease = str(uuid.uuid4())
            claim = await adapter.claim_next(assignee, lease_id=lease, lease_s=int(lease_s))
            if claim is not None:
                await adapter.close_bead(claim.bead.id, lease_id=lease, result=assignee)
                os.write(file, f"{claim.bead.id} {time.monotonic()}\n".encode())
            elif (await adapter.list(BeadFilter(status="claimed"), limit=1)).items:
                await asyncio.sleep(0.1)  # the lease of a killed process has to expire first
            else:
                return

    await asyncio.gather(*(work() for _ in range(int(tasks))))


async def show_ready(adapter: Any) -> None:
    """Prints what is ready, once."""
    page = await adapter.ready(limit=500)
    emit([bead.id for bead in page.items])


async def append_events(
    adapter: Any, count: str = "10000", tasks: str = "8", size: str = "200"
) -> None:
    """Appends in several tasks, until killed or done."""
    numbers = iter(range(int(count)))

    async def append() -> None:
        for number in numbers:
            (event,) = await adapter.append(
                [NewEvent(type="test.work", data={"n": number, "fill": "x" * int(size)})]
            )
            emit({"n": number, "seq": event.seq, "hash": event.hash})

    await asyncio.gather(*(append() for _ in range(int(tasks))))


async def append_until_full(adapter: Any, max_bytes: str) -> None:
    """Appends until no file can grow, then prints the error."""
    signal.signal(
        signal.SIGXFSZ, signal.SIG_IGN
    )  # so that a write beyond the limit is EFBIG after a partial write
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(max_bytes), int(max_bytes)))
    while True:
        try:
            (event,) = await adapter.append([NewEvent(type="test.work", data={"fill": "x" * 777})])
        except AdapterError as error:
            emit({"error": type(error).__name__})
            return
        emit({"seq": event.seq, "hash": event.hash})


async def fill_disk(adapter: Any, directory: str) -> None:
    """Appends until the file system of `directory` is full, removes a file there, and appends
    again.
    """
    ballast = Path(directory) / "ballast"
    ballast.write_bytes(bytes(2 << 20))
    full = False
    while True:
        try:
            (event,) = await adapter.append([NewEvent(type="test.work", data={"fill": "x" * 777})])
        except AdapterError as error:
            emit({"error": type(error).__name__, "health": (await adapter.health()).state})
            full = True
            ballast.unlink()
            continue
        emit({"seq": event.seq, "hash": event.hash})
        if full:
            break
    batch = await adapter.read(limit=1000)
    records = list(batch.events)
    while batch.next_since < batch.head_seq:
        batch = await adapter.read(since=batch.next_since, limit=1000)
        records += batch.events
    report = await adapter.verify()
    emit(
        {
            "health": (await adapter.health()).state,
            "ok": report.ok,
            "hashes": [event.hash for event in records],
        }
    )


async def write_objects(adapter: Any, tasks: str = "8") -> None:
    """Writes a few objects repeatedly in several tasks, each task its own, until killed."""

    async def write(task: int) -> None:
        number = 0
        while True:
            path = f"c{task}/{number % 5}"
            await adapter.write(path, json.dumps({"n": number, "fill": "x" * 5000}).encode())
            emit({"path": path, "n": number})
            number += 1

    await asyncio.gather(*(write(task) for task in range(int(tasks))))


async def count_up(adapter: Any, times: str) -> None:
    """Increments the object `n` that many times by conditional writes."""
    remaining = int(times)
    while remaining:
        stored = await adapter.read("n")
        value = int(b"".join([chunk async for chunk in stored.body]))
        try:
            await adapter.write("n", b"%d" % (value + 1), if_match=stored.meta.etag)
        except PreconditionFailed:
            continue
        remaining -= 1


async def store_entries(adapter: Any, count: str = "1000000", prefix: str = "k") -> None:
    """Stores entries one after another, until killed or done."""
    for number in range(int(count)):
        value = f"entry{prefix}{number} of the worker"
        await adapter.store(f"{prefix}{number}", value)
        emit({"key": f"{prefix}{number}", "value": value})


WORK: Mapping[str, Callable[..., Awaitable[None]]] = {
    "create-beads": create_beads,
    "claim-all": claim_all,
    "drain": drain,
    "show-ready": show_ready,
    "append-events": append_events,
    "append-until-full": append_until_full,
    "fill-disk": fill_disk,
    "write-objects": write_objects,
    "count-up": count_up,
    "store-entries": store_entries,
}


async def main(
    slot: str, impl: str, prefix: str, options: str, box: str, work: str, *arguments: str
) -> None:
    store = LocalStore(
        cast(SlotName, slot),
        impl,
        Path(prefix),
        options=json.loads(options),
        secrets=json.loads(sys.stdin.readline()),
        box_at_host=box,
    )
    adapter = await store.open()
    try:
        await WORK[work](adapter, *arguments)
    finally:
        await store.close_all()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
