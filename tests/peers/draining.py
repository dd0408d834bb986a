"""Many processes drain one store of beads; some are killed meanwhile. Acknowledged calls are
compared with the stored beads."""

import asyncio
import contextlib
import random
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Any

from agentbox_testkit.local_store import LocalStore

from agentbox.contracts.beads import BeadFilter, BeadSpec

LEASE = 5  # seconds: the shortest


@dataclass
class Drained:
    """The result. `seconds` is from the start to the last close; `told` counts the acknowledged
    closes of each bead."""

    seconds: float
    told: Counter[str]
    killed: int
    closed: int
    attempts: Counter[int]
    left: int

    def wrong(self) -> list[str]:
        """A sentence for each promise that was broken."""
        found = []
        if self.left:
            found.append(f"{self.left} beads are not closed as done")
        if twice := [name for name, count in self.told.items() if count > 1]:
            found.append(f"{len(twice)} beads were closed twice")
        if len(self.told) > self.closed:
            found.append(f"{len(self.told) - self.closed} acknowledged closes are lost")
        return found


async def create(adapter: Any, count: int) -> None:
    """So many tasks below one epic."""
    epic, _ = await adapter.create_epic(BeadSpec(title="drain", creator="bench"))
    numbers = iter(range(count))

    async def one() -> None:
        for number in numbers:
            await adapter.create_child(
                epic.id, BeadSpec(title=f"{number}", creator="bench", data={"n": number})
            )

    await asyncio.gather(*(one() for _ in range(16)))


async def drain(
    store: LocalStore,
    adapter: Any,
    *,
    beads: int,
    processes: int,
    tasks: int,
    kills: int = 0,
    seed: int = 1,
) -> Drained:
    """Each process is an adapter on the store, not a complete box. A killed one is replaced."""
    draw, go = random.Random(seed), asyncio.Event()
    alive: list[asyncio.subprocess.Process] = []
    told = store.prefix / f"told-{uuid.uuid4()}"
    told.touch()

    async def run(name: str, ready: asyncio.Event) -> None:
        async with store.worker("drain", name, str(told), str(tasks), str(LEASE)) as process:
            await process.stdout.readline()
            ready.set()
            await go.wait()
            alive.append(process)
            process.stdin.write(b"go\n")
            await process.wait()
            alive.remove(process)

    jobs, waiting = set(), [asyncio.Event() for _ in range(processes)]
    for number, ready in enumerate(waiting):
        jobs.add(asyncio.create_task(run(f"w{number}", ready)))
    await asyncio.gather(*(ready.wait() for ready in waiting))
    started = time.monotonic()
    go.set()
    for number in range(kills):
        while told.read_bytes().count(b"\n") < (number + 1) * beads * 0.8 / kills or not alive:
            await asyncio.sleep(0.005)
        with contextlib.suppress(ProcessLookupError):
            draw.choice(alive).kill()
        jobs.add(asyncio.create_task(run(f"r{number}", asyncio.Event())))
    await asyncio.gather(*jobs)
    lines = [line.split() for line in told.read_text().splitlines()]
    there = await _everything(adapter)
    done = [bead for bead in there if (bead.status, bead.outcome) == ("closed", "done")]
    return Drained(
        seconds=max(float(at) for _, at in lines) - started, told=Counter(name for name, _ in lines), killed=kills, closed=len(done),
        attempts=Counter(bead.attempts for bead in there), left=beads - len(done),
    )  # fmt: skip


async def _everything(adapter: Any) -> list[Any]:
    found, cursor = [], None
    while True:
        page = await adapter.list(BeadFilter(kind="task"), limit=500, cursor=cursor)
        found += page.items
        if (cursor := page.next_cursor) is None:
            return found
