"""Every class of every slot, through the whole pipeline, on a real disk, beside what a user would pick instead.

`python bench/slots.py [--runs N] [--seconds S] [--dir DIR] [--only SLOT[,SLOT]] [--quick]`. Latency: 2,000 calls one after another, after
200 that do not count (spawn: 200 after 20; an external class: a quarter). Floor: 16 workers for 10 s. A failed call is counted and is no sample. Local classes
are held to the local column, external ones, whose peers run on the same machine, to the external one. `--quick` is for a
look: 300 calls, 2 s, nothing kept. Exit 1 on a miss.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Claim, write_results
from slot_calls import CALLS, Call, Prepare
from slot_peers import on_disk, on_server
from slot_rooms import Room, room
from slot_stream import stream_claims

from agentbox.adapters.runtime.adapter import SLOTS
from agentbox.adapters.runtime.registry import allowed
from agentbox.core.slot_errors import AdapterError

LATENCY, WARM_UP, WORKERS, SECONDS = 2000, 200, 16, 10.0
QUICK, SPAWN, ABROAD = (300, 2.0), 10, 4  # spawn: a tenth of the calls; external classes: a quarter
MOST_FAILED = 0.001
# operation: p95 in ms of a local class and of an external one, calls a second of a local one
BOUNDS = {
    "beads.create": (20, 200, 500), "beads.claim": (20, 200, 500), "beads.close": (20, 200, 500), "beads.ready": (10, 100, 1000),
    "beads.show": (10, 100, 1000), "pods.write": (30, 300, 200), "pods.read": (15, 150, 1000), "memory.store": (50, 500, 100),
    "memory.search": (25, 250, 100), "events.append": (5, 50, 3000), "orchestrator.spawn": (200, 2000, 20),
}  # fmt: skip


@dataclass
class Tally:
    """Calls that were made, and that failed."""

    made: int = 0
    failed: int = 0
    why: str = ""

    async def timed(self, call: Call) -> float | None:
        """Milliseconds; None for a call that failed."""
        started = time.perf_counter()
        self.made += 1
        try:
            await call()
        except AdapterError as error:
            self.failed += 1
            self.why = error.message
            return None
        return (time.perf_counter() - started) * 1000


async def latency(prepare: Prepare, runs: int, warm_up: int, tally: Tally) -> list[float]:
    """Milliseconds of each counted call."""
    found = [await tally.timed(await prepare()) for _ in range(warm_up + runs)]
    return [sample for sample in found[warm_up:] if sample is not None]


async def rate(prepare: Prepare, seconds: float, tally: Tally) -> float:
    """Calls a second of 16 workers; what prepares them runs between, and its time does not count."""
    busy = done = 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        rows = iter([await prepare() for _ in range(WORKERS * 10)])

        async def worker(rows: Iterator[Call]) -> int:
            return sum([await tally.timed(call) is not None for call in rows])

        started = time.perf_counter()
        done += sum(await asyncio.gather(*(worker(rows) for _ in range(WORKERS))))
        busy += time.perf_counter() - started
    return done / busy


async def of_room(found: Room, runs: int, seconds: float) -> tuple[list[Claim], list[str]]:
    """The claims of one class, and a sentence for each miss."""
    local = found.use.startswith("local-")
    claims, missed = [], []
    for method, prepare in (await CALLS[found.slot](found)).items():
        p95_local, p95_external, floor = BOUNDS[f"{found.slot}.{method}"]
        bound = p95_local if local else p95_external
        share = SPAWN if method == "spawn" else 1 if local else ABROAD
        tally = Tally()
        samples = await latency(prepare, runs // share, WARM_UP // share, tally)
        speed = await rate(prepare, seconds, tally)
        extra: dict[str, Any] = {"per_second": speed, "floor": floor if local else None, "workers": WORKERS, "failed": tally.failed, "made": tally.made}  # fmt: skip
        claim = Claim(
            f"{found.name} {method}",
            "ms",
            samples,
            bound,
            f"concurrency 1, {WARM_UP // share} warm-ups",
            extra=extra,
        )
        claims.append(claim)
        print(
            f"{claim.name:<44} {speed:8.0f}/s" + (f"  floor {floor}" if local else ""), flush=True
        )
        missed += list(_misses(claim, floor if local else 0, tally))
    return claims + await asyncio.to_thread(on_server, found), missed


def _misses(claim: Claim, floor: float, tally: Tally) -> Iterator[str]:
    p95, speed = claim.summary()["p95"], claim.extra["per_second"]
    if claim.must_p95 is not None and p95 > claim.must_p95:
        yield f"{claim.name}: p95 {p95:.1f} ms, at most {claim.must_p95:g} are allowed"
    if speed < floor:
        yield f"{claim.name}: {speed:.0f} a second, the floor is {floor:g}"
    if tally.failed > MOST_FAILED * tally.made:
        yield f"{claim.name}: {tally.failed} of {tally.made} calls failed ({tally.why})"


async def measure(
    prefix: Path, slots: list[str], runs: int, seconds: float
) -> tuple[list[Claim], list[str]]:
    """Every class of those slots."""
    claims, missed = await asyncio.to_thread(on_disk, prefix), []
    for slot in SLOTS:
        for use in allowed(slot) if slot in slots else ():
            if use == "off":
                continue
            async with room(slot, use, prefix / f"{slot}-{use}") as found:
                more, wrong = await of_room(found, runs, seconds)
                if slot == "orchestrator":
                    streamed, late = await stream_claims(found, seconds)
                    more, wrong = more + streamed, wrong + late
            claims += more
            missed += wrong
    return claims, missed


def main() -> int:
    """Runs it in a folder of its own."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--runs", type=int, default=LATENCY, help="counted calls of each operation; at least 2000"
    )
    arguments.add_argument("--seconds", type=float, default=SECONDS)
    arguments.add_argument("--dir", default="/var/tmp", help="a folder on the disk to measure")
    arguments.add_argument("--only", default=",".join(SLOTS))
    arguments.add_argument("--quick", action="store_true")
    chosen = arguments.parse_args()
    runs, seconds = QUICK if chosen.quick else (max(chosen.runs, LATENCY), chosen.seconds)
    prefix = Path(tempfile.mkdtemp(prefix="agentbox-bench-", dir=chosen.dir))
    try:
        claims, missed = asyncio.run(measure(prefix, chosen.only.split(","), runs, seconds))
    finally:
        shutil.rmtree(prefix)
    whole = not chosen.quick and chosen.only == ",".join(SLOTS)
    write_results("slots", claims, None if whole else Path(tempfile.gettempdir()) / "slots.json")
    for sentence in missed:
        print(f"missed: {sentence}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
