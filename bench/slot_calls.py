"""The operations that are measured: what prepares one call of each, on the data sets of `slots.py`."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/peers"))

import psycopg
from memory_fill import fill, texts
from slot_rooms import Room

from agentbox.adapters.runtime.slots import Slots
from agentbox.contracts.beads import BeadSpec
from agentbox.contracts.events import NewEvent
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.slot_errors import AdapterTimeout, SlotUnavailable

BEADS, READY, PAGE = 10_000, 1_000, 10
OBJECTS, OBJECT = 1_000, 16 << 10
ENTRIES = 10_000
KIB = {"fill": "x" * 1000}
TRUE = AgentSpec(name="true", argv=("/bin/true",), profile="sandboxed")

Call = Callable[[], Awaitable[Any]]
Prepare = Callable[[], Awaitable[Call]]


async def many(work: Callable[[int], Awaitable[Any]], numbers: int, tasks: int = 32) -> None:
    """Does `work` for each number, so many at once; again, for half a minute, where the slot is not there."""
    left = iter(range(numbers))

    async def one(numbers: Iterator[int]) -> None:
        for number in numbers:
            for wait in reversed(range(60)):
                try:
                    await work(number)
                    break
                except (SlotUnavailable, AdapterTimeout):
                    if not wait:
                        raise
                    await asyncio.sleep(0.5)

    await asyncio.gather(*(one(left) for _ in range(tasks)))


async def beads(room: Room) -> dict[str, Prepare]:
    """10,000 beads, of which 1,000 are ready."""
    box, turn = room.box, count()
    epic, _ = await box.beads.create_epic(BeadSpec(title="epic", creator="bench"))
    ids: list[str] = []

    async def made(number: int) -> None:
        bead, _ = await box.beads.create_child(
            epic.id, BeadSpec(title=f"bead {number}", creator="bench")
        )
        ids.append(bead.id)
        if number >= READY:
            await box.beads.close_bead(bead.id)

    await many(made, BEADS)

    async def create() -> Call:
        spec = BeadSpec(
            title=f"bead {next(turn)}", creator="bench", body="b" * 200, data={"n": next(turn)}
        )
        return lambda: box.beads.create_child(epic.id, spec)

    async def claim() -> Call:
        bead, _ = await box.beads.create_child(epic.id, BeadSpec(title="x", creator="bench"))
        return lambda: box.beads.claim(bead.id, "bench", lease_id=str(uuid4()))

    async def close() -> Call:
        bead_id, lease = await _claimed(box, epic.id)
        return lambda: box.beads.close_bead(bead_id, lease_id=lease, result={"code": 0})

    async def ready() -> Call:
        return lambda: box.beads.ready(limit=PAGE)

    async def show() -> Call:
        return lambda: box.beads.show(ids[next(turn) * 7919 % len(ids)])

    return {"create": create, "claim": claim, "close": close, "ready": ready, "show": show}


async def pods(room: Room) -> dict[str, Prepare]:
    """1,000 objects of 16 KiB."""
    box, turn, body = room.box, count(), os.urandom(OBJECT)

    async def put(number: int) -> None:
        await box.pods.write(f"bench/{number}", body)

    await many(put, OBJECTS, 8)

    async def write() -> Call:
        path, fresh = f"bench/{next(turn) * 7919 % OBJECTS}", os.urandom(OBJECT)
        return lambda: box.pods.write(path, fresh)

    async def whole(path: str) -> int:
        found = await box.pods.read(path)
        return sum([len(piece) async for piece in found.body])

    async def read() -> Call:
        path = f"bench/{next(turn) * 7919 % OBJECTS}"
        return lambda: whole(path)

    return {"write": write, "read": read}


async def memory(room: Room) -> dict[str, Prepare]:
    """10,000 entries in one namespace; queries are texts of the same kind."""
    box, turn, lines, queries = room.box, count(), texts(ENTRIES), texts(4000, seed=99)
    await box.memory.store("first", "a whale")
    if room.server is not None:
        with psycopg.connect(
            room.server.dsn(options="-c search_path=agentbox_memory,public"), autocommit=True
        ) as db:
            db.execute("DELETE FROM entries")
            db.execute("DELETE FROM namespaces")
            await fill(db, lines)
    else:
        await many(
            lambda n: box.memory.store(f"{n}", None, text=lines[n], metadata={"n": n}), ENTRIES
        )

    async def store() -> Call:
        number = next(turn)
        return lambda: box.memory.store(
            f"{number * 7919 % ENTRIES}", None, text=queries[number % len(queries)]
        )

    async def search() -> Call:
        query = queries[next(turn) % len(queries)]
        return lambda: box.memory.search(query, limit=10)

    return {"search": search, "store": store}


async def events(room: Room) -> dict[str, Prepare]:
    """1 KiB of data, fsync in groups."""
    box = room.box

    async def append() -> Call:
        return lambda: box.events.append([NewEvent(type="bench.thing", data=KIB)])

    return {"append": append}


async def orchestrator(room: Room) -> dict[str, Prepare]:
    """A small program under the default profile, to its exec."""
    box = room.box

    async def spawn() -> Call:
        request = str(uuid4())
        return lambda: box.orchestrator.spawn(TRUE, request_id=request)

    return {"spawn": spawn}


async def _claimed(box: Slots, epic: str) -> tuple[str, str]:
    """A new bead and the lease that holds it."""
    lease = str(uuid4())
    bead, _ = await box.beads.create_child(epic, BeadSpec(title="x", creator="bench"))
    await box.beads.claim(bead.id, "bench", lease_id=lease)
    return bead.id, lease


CALLS: dict[str, Callable[[Room], Awaitable[dict[str, Prepare]]]] = {
    "beads": beads, "pods": pods, "memory": memory, "events": events, "orchestrator": orchestrator,
}  # fmt: skip
