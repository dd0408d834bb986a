"""Backups of a running box: for how long writes wait, and a full backup.

`python bench/backups.py [--cuts N] [--mebibytes N] [--quick] [--engine E] [--folder PLACE]`. Cuts: the slots of one program, 16 writers that write
beads, pods, memory and events without a rest; a sample is the time from the closing of the gate to its opening. A cut that is refused
because a write took more than 150 ms is counted beside them. Full: a management API of its own with as many objects of 1 MiB, a client
that asks for one backup and waits until it is verified. `--engine restic`: only such backups, the first one and those after
1 % of the objects were changed, into a repository of restic in the folder of the box.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path

import pyrage
from measure import Claim, write_results

from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.slots import Slots, create_slots
from agentbox.api.backups.cut import Cutter
from agentbox.client import BoxClient
from agentbox.contracts.beads import BeadSpec
from agentbox.contracts.events import NewEvent
from agentbox.core import logging
from agentbox.core.ids import uuid7
from agentbox.core.paths import CHECKOUT, Paths
from agentbox.core.slot_errors import BackupBusy
from agentbox.plan.model import SlotPlan

sys.path.insert(0, str(CHECKOUT / "tests"))
from support import tables
from support.api_box import SLOTS, ApiBox, api_plan
from support.restic_repositories import stored_bytes

WRITERS, CUTS, MEBIBYTES = 16, 200, 1024
PAUSE_MS, FULL_SECONDS, CHANGED_SECONDS = 100.0, 120.0, 20.0
_REST = 0.05  # seconds between two cuts


async def write_always(slots: Slots, number: int) -> None:
    """One writer, until it is cancelled."""
    for count in itertools.count():
        bead, _ = await slots.beads.create_epic(
            BeadSpec(title=f"{number} {count}", creator="bench")
        )
        await slots.pods.write(f"bench/{number}", os.urandom(4096))
        await slots.memory.store(f"key-{number}", {"count": count}, text=f"note {count}")
        await slots.events.append([NewEvent(type="bench.written", data={"count": count})])
        await slots.beads.close_bead(bead.id)


async def pauses(folder: Path, cuts: int) -> tuple[list[float], int]:
    """Milliseconds of each cut, and how many were refused."""
    plan = api_plan(slots={**SLOTS, "orchestrator": SlotPlan(use="off", required=False)})
    slots = create_slots(plan, Paths(folder), Deps(metrics=Metrics()))
    await slots.start()
    writers = [asyncio.create_task(write_always(slots, number)) for number in range(WRITERS)]
    cutter, samples, refused = Cutter(Paths(folder), slots), [], 0
    for _ in range(cuts):
        await asyncio.sleep(_REST)
        cut = await cutter.prepare(uuid7(), "", plan)
        try:
            await cutter.take(cut)
            samples.append(cut.paused * 1000)
        except BackupBusy:
            refused += 1
        finally:
            await asyncio.to_thread(cut.close)
    for writer in writers:
        writer.cancel()
    await asyncio.wait(writers)
    await slots.stop()
    return samples, refused


def full(folder: Path, mebibytes: int, runs: int) -> list[float]:
    """Seconds of each full backup."""
    recipient = str(pyrage.x25519.Identity.generate().to_public())
    table = tables.backup(recipients=(recipient,), min_free=1 << 20, rate=1 << 40, keep=1, keep_daily=0, keep_weekly=0, keep_monthly=0)  # fmt: skip
    with ApiBox(folder, orchestrator=False, backup=table) as box, box.client() as client:
        for number in range(mebibytes):
            client.pods.write(f"bench/{number}", os.urandom(1 << 20))
        return [backed_up(client) for _ in range(runs)]


def backed_up(client: BoxClient) -> float:
    """Seconds of one backup."""
    started = time.perf_counter()
    begun = client.backups.create()
    while (found := client.backups.get(begun.id)).state not in ("created", "failed"):
        time.sleep(0.1)
    if found.state == "failed":
        raise SystemExit(found.reason)
    return time.perf_counter() - started


def changed(folder: Path, mebibytes: int, runs: int) -> tuple[float, list[float], list[float]]:
    """Seconds of the first backup with restic, of each after 1 % was changed, and how many MB that
    one added to the repository.
    """
    table = tables.backup(engine="restic", password_env="WORD", min_free=1 << 20, rate=1 << 40)
    seconds, added = [], []
    with ApiBox(folder, orchestrator=False, backup=table) as box, box.client() as client:
        box.paths.mounted_secrets.mkdir(parents=True, exist_ok=True)
        (box.paths.mounted_secrets / "WORD").write_text("a password")
        for number in range(mebibytes):
            client.pods.write(f"bench/{number}", os.urandom(1 << 20))
        first = backed_up(client)
        for run in range(runs):
            before = stored_bytes(box.paths.backups)
            for number in range(run, mebibytes, 100):
                client.pods.write(f"bench/{number}", os.urandom(1 << 20))
            seconds.append(backed_up(client))
            added.append((stored_bytes(box.paths.backups) - before) / 1e6)
    return first, seconds, added


def measure_restic(folder: Path, mebibytes: int, runs: int, out: Path | None) -> int:
    """Exit 1 beyond a bound."""
    first, seconds, added = changed(folder, mebibytes, runs)
    is_full = mebibytes == MEBIBYTES
    claims = [
        Claim("first backup, restic", "s", [first], FULL_SECONDS if is_full else None, f"{mebibytes} MiB of pods that cannot be compressed; cut, staging, restic, check"),
        Claim("backup with 1 % changed, restic", "s", seconds, CHANGED_SECONDS if is_full else None, "the same, after each hundredth object was written again", extra={"added_mb": added}),
    ]  # fmt: skip
    write_results("backups_restic", claims, out)
    return int(is_full and (first > FULL_SECONDS or max(seconds) > CHANGED_SECONDS))


def main() -> int:
    """Exit 1 beyond a bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=CUTS)
    parser.add_argument("--mebibytes", type=int, default=MEBIBYTES)
    parser.add_argument("--runs", type=int, default=3, help="full backups")
    parser.add_argument("--engine", choices=("archive", "restic"), default="archive")
    parser.add_argument("--quick", action="store_true", help="20 cuts, one backup of 64 MiB")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument(
        "--out", type=Path, help="keep the samples in this file, not in bench/results"
    )
    given = parser.parse_args()
    if given.quick:
        given.cuts, given.mebibytes, given.runs = 20, 64, 1
    logging.configure("bench", "error")
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="abx-backups-") as folder:
        if given.engine == "restic":
            return measure_restic(Path(folder) / "restic", given.mebibytes, given.runs, given.out)
        samples, refused = asyncio.run(pauses(Path(folder) / "cuts", given.cuts))
        seconds = full(Path(folder) / "full", given.mebibytes, given.runs)
    claims = [
        Claim("pause of writes", "ms", samples, None, f"{WRITERS} writers over all slots; p99 must be {PAUSE_MS:g}", extra={"refused": refused}),
        Claim("full backup", "s", seconds, FULL_SECONDS if given.mebibytes == MEBIBYTES else None, f"{given.mebibytes} MiB of pods that cannot be compressed; cut, staging, age, verification"),
    ]  # fmt: skip
    write_results("backups", claims, given.out)
    slow = claims[0].summary()["p99"] > PAUSE_MS
    return int(slow or (given.mebibytes == MEBIBYTES and max(seconds) > FULL_SECONDS))


if __name__ == "__main__":
    sys.exit(main())
