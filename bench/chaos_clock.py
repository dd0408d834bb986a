"""Days of scheduled backups by a clock that steps: forward and back by days, by an hour twice a year, by a second."""

import random
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from measure import Claim
from support.staged_snapshots import CUT, identity, stage

from agentbox.api.backups.schedule import due_at, is_unusable
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.errors import CLOCK, BackupError
from agentbox.backup.retention import Policy

DAYS = 30
LOOKS = 4  # a day
STEPS = (timedelta(hours=1), timedelta(hours=-1), timedelta(seconds=1), timedelta(seconds=-1))
POLICY = Policy(keep=3, daily=4, weekly=2, monthly=1)


def steps(folder: Path, rng: random.Random, runs: int) -> tuple[list[Claim], list[str]]:
    """`runs` boxes of DAYS days each."""
    seconds, wrong = [], []
    counts = dict.fromkeys(("made", "pruned", "prunings refused"), 0)
    for number in range(runs):
        began = time.perf_counter()
        wrong += [f"clock: {number}: {said}" for said in _days(folder / str(number), rng, counts)]
        seconds.append(time.perf_counter() - began)
    where = f"{DAYS} days, a backup a day, steps of up to 9 days, an hour and a second"
    extra = {"runs": runs, **counts}
    return [Claim("clock: one box", "s", seconds, None, where, extra=extra)], wrong


def _days(folder: Path, rng: random.Random, counts: dict[str, int]) -> list[str]:
    _, recipient = identity()
    repository = ArchiveRepository(folder / "backups", (recipient,))
    real, ahead = datetime(2026, 3, 20, tzinfo=UTC), timedelta()
    attempted, made, wrong = real, list[datetime](), list[str]()
    stepped = 0
    for look in range(DAYS * LOOKS):
        real += timedelta(days=1) / LOOKS
        if rng.random() < 0.08:
            step = rng.choice((*STEPS, timedelta(days=rng.randrange(-9, 10))))
            ahead, stepped = ahead + step if rng.random() < 0.6 else timedelta(), stepped + 1
        now = real + ahead
        if is_unusable(attempted, now):
            attempted = now
        due = due_at("30 3 * * *", attempted, now)
        if due is None or due > now:
            continue
        attempted = now
        if due_at("30 3 * * *", attempted, now) <= now:  # type: ignore[operator]
            wrong.append(f"a second run is due at once, at {now}")
        cut = replace(CUT, id=f"s{look:04}", time=now)
        repository.write(stage(folder / "staged", cut, size=10))
        made.append(now)
        counts["made"] += 1
        wrong += _prune(repository, made, now, counts)
    if not DAYS - 12 * stepped <= len(made) <= DAYS + stepped + 1:
        wrong.append(f"{len(made)} runs in {DAYS} days with {stepped} steps")
    return wrong + [f"damaged: {fault}" for fault in repository.verify_all()]


def _prune(
    repository: ArchiveRepository, made: list[datetime], now: datetime, counts: dict[str, int]
) -> list[str]:
    """`made` has the times of all that were ever made."""
    before = {head.id: head.time for head in repository.list()}
    newest = max(before, key=lambda id: (before[id], id))
    try:
        gone = repository.prune(POLICY, verified=newest, now=now)
    except BackupError as error:
        counts["prunings refused"] += 1
        return [] if error.reason == CLOCK else [error.message]
    counts["pruned"] += len(gone)
    after = sorted(head.time for head in repository.list())
    wrong = []
    if after[-POLICY.keep :] != sorted(made)[-POLICY.keep :]:
        wrong.append(f"one of the {POLICY.keep} newest was pruned at {now}")
    days = sorted({at.date() for at in before.values()})[-POLICY.daily :]
    if not set(days) <= {at.date() for at in after}:
        wrong.append(f"one of the last {POLICY.daily} days has no snapshot at {now}")
    return wrong
