"""The local classes of the slots, through the whole pipeline, on a real disk (slots.md 6).

`python bench/slots.py [--runs N] [--seconds S] [--dir DIR]`. Latency: 2,000 calls one after another, after 200 that do
not count. Floor: 16 workers for 10 s. Each write is redacted, journalled and durable, as in a box. Exit 1 on a miss.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from measure import Claim, keep

from agentbox.adapters.base import SLOTS, Deps, SlotConfig
from agentbox.adapters.beads.contract import BeadSpec
from agentbox.adapters.container import Container
from agentbox.adapters.events.contract import NewEvent
from agentbox.adapters.metrics import Metrics
from agentbox.log import configure
from agentbox.privacy import guard_of
from agentbox.settings import Paths

USES = {"beads": "local-sqlite", "events": "local-jsonl", "pods": "off", "memory": "off", "orchestrator": "off"}
PRIVACY = {"enabled": True, "mode": "rules", "entities": ["secret"], "policy": {"beads": "soft", "events": "soft"}}
CALLS, WARM_UP, WORKERS, SECONDS = 2000, 200, 16, 10.0
BEADS, READY, PAGE = 10_000, 1_000, 10
KIB = {"fill": "x" * 1000}
# operation: (p95 in ms, floor a second)
BOUNDS = {
    "beads.create": (20.0, 500.0), "beads.claim": (20.0, 500.0), "beads.close": (20.0, 500.0), "beads.ready": (10.0, 1000.0),
    "beads.show": (10.0, 1000.0), "events.append": (5.0, 3000.0),
}  # fmt: skip

Call = Callable[[], Awaitable[Any]]


def container(prefix: Path) -> Container:
    """The slots of a box, without a box; its log says what a box's says."""
    configure("bench", "info")
    paths = Paths(prefix)
    configs = {slot: SlotConfig(slot=slot, use=USES[slot], required=False, paths=paths, box="bench") for slot in SLOTS}
    return Container(configs, Deps(metrics=Metrics()), guard_of(PRIVACY))


async def fill(box: Container) -> tuple[str, list[str]]:
    """10,000 beads, of which 1,000 are ready; the id of their epic, and those of all."""
    epic, _ = await box.beads.create_epic(BeadSpec(title="epic", creator="bench"))
    ids: list[str] = []

    async def worker(numbers: Iterator[int]) -> None:
        for number in numbers:
            bead, _ = await box.beads.create_child(epic.id, BeadSpec(title=f"bead {number}", creator="bench"))
            ids.append(bead.id)
            if number >= READY:
                await box.beads.close_bead(bead.id)

    numbers = iter(range(BEADS))
    await asyncio.gather(*(worker(numbers) for _ in range(64)))
    return epic.id, ids


async def claimed(box: Container, epic: str) -> tuple[str, str]:
    """A new bead and the lease that holds it."""
    lease = str(uuid4())
    bead, _ = await box.beads.create_child(epic, BeadSpec(title="x", creator="bench"))
    await box.beads.claim(bead.id, "bench", lease_id=lease)
    return bead.id, lease


def calls(box: Container, epic: str, ids: list[str]) -> dict[str, Callable[[], Awaitable[Call]]]:
    """For each operation what prepares one call of it; only the call itself is timed."""
    turn = count()

    async def create() -> Call:
        spec = BeadSpec(title=f"bead {next(turn)}", creator="bench", body="b" * 200, data={"n": next(turn)})
        return lambda: box.beads.create_child(epic, spec)

    async def claim() -> Call:
        bead, _ = await box.beads.create_child(epic, BeadSpec(title="x", creator="bench"))
        return lambda: box.beads.claim(bead.id, "bench", lease_id=str(uuid4()))

    async def close() -> Call:
        bead_id, lease = await claimed(box, epic)
        return lambda: box.beads.close_bead(bead_id, lease_id=lease, result={"code": 0})

    async def ready() -> Call:
        return lambda: box.beads.ready(limit=PAGE)

    async def show() -> Call:
        return lambda: box.beads.show(ids[next(turn) * 7919 % len(ids)])

    async def append() -> Call:
        return lambda: box.events.append([NewEvent(type="bench.thing", data=KIB)])

    return {
        "beads.create": create, "beads.claim": claim, "beads.close": close, "beads.ready": ready, "beads.show": show,
        "events.append": append,
    }  # fmt: skip


async def latency(prepare: Callable[[], Awaitable[Call]], runs: int) -> list[float]:
    """Milliseconds of each counted call."""
    samples: list[float] = []
    for number in range(WARM_UP + runs):
        call = await prepare()
        started = time.perf_counter()
        await call()
        if number >= WARM_UP:
            samples.append((time.perf_counter() - started) * 1000)
    return samples


async def rate(prepare: Callable[[], Awaitable[Call]], seconds: float) -> float:
    """Calls a second of 16 workers; what prepares them runs between, and its time does not count."""
    busy = done = 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        batch = [await prepare() for _ in range(WORKERS * 20)]

        async def worker(rows: Iterator[Call]) -> None:
            for call in rows:
                await call()

        rows = iter(batch)
        started = time.perf_counter()
        await asyncio.gather(*(worker(rows) for _ in range(WORKERS)))
        busy += time.perf_counter() - started
        done += len(batch)
    return done / busy


async def measure(prefix: Path, runs: int, seconds: float) -> tuple[list[Claim], list[str]]:
    """The claims, and a sentence for each floor that was missed."""
    box = container(prefix)
    await box.start()
    claims, missed = [], []
    try:
        epic, ids = await fill(box)
        for name, prepare in calls(box, epic, ids).items():
            bound, floor = BOUNDS[name]
            found = await latency(prepare, runs)
            speed = await rate(prepare, seconds)
            where = f"{BEADS} beads, {READY} ready, pages of {PAGE}; concurrency 1, {WARM_UP} warm-ups"
            claims.append(
                Claim(name, "ms", found, bound, where, extra={"per_second": speed, "floor": floor, "workers": WORKERS})
            )
            print(f"{name:<20} {speed:10.0f} /s  floor {floor:.0f}")
            if speed < floor:
                missed.append(f"{name}: {speed:.0f} a second, the floor is {floor:.0f}")
    finally:
        await box.stop()
    return claims, missed


def main() -> int:
    """Runs it in a folder of its own."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=CALLS, help="counted calls of each operation; at least 2000")
    arguments.add_argument("--seconds", type=float, default=SECONDS)
    arguments.add_argument("--dir", default="/var/tmp", help="a folder on the disk to measure")
    chosen = arguments.parse_args()
    prefix = Path(tempfile.mkdtemp(prefix="agentbox-bench-", dir=chosen.dir))
    try:
        claims, missed = asyncio.run(measure(prefix, max(chosen.runs, CALLS), chosen.seconds))
    finally:
        shutil.rmtree(prefix)
    keep("slots", claims)
    for sentence in missed:
        print(sentence, file=sys.stderr)
    slow = any(claim.must_p95 is not None and claim.summary()["p95"] > claim.must_p95 for claim in claims)
    return 1 if missed or slow else 0


if __name__ == "__main__":
    sys.exit(main())
