"""Builds what makes backups, and the jobs of every day."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.backups.daily import run_daily
from agentbox.api.backups.maker import BackupMaker
from agentbox.api.backups.program import ChildProgram, SupervisedProgram
from agentbox.api.backups.record import BackupRecord
from agentbox.api.backups.schedule import overdue_seconds, run_schedule
from agentbox.api.backups.verification import SnapshotVerifier
from agentbox.api.metrics.backup_metrics import BackupMetrics
from agentbox.api.plan_source import PlanSource
from agentbox.core import clock
from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths


@frozen
class Backups:
    """`jobs` by name, each until it is cancelled; `maker.run` is not among them."""

    maker: BackupMaker
    verifier: SnapshotVerifier
    jobs: Mapping[str, Callable[[], Awaitable[None]]]


def make_backups(
    paths: Paths,
    plans: PlanSource,
    slots: Slots,
    registry: CollectorRegistry,
    ready_once: asyncio.Event | None,
) -> Backups:
    """`ready_once` is set when a booted box is ready for the first time; None without a boot."""
    record = BackupRecord(paths)
    succeeded_at = record.succeeded_at
    metrics = BackupMetrics(
        registry,
        succeeded_at.timestamp() if succeeded_at else None,
        lambda: overdue_seconds(plans.current.backup.schedule, record, clock.now()),
    )
    program = ChildProgram(paths) if ready_once is None else SupervisedProgram(paths)
    maker = BackupMaker(paths, plans, slots, program, record, metrics)
    verifier = SnapshotVerifier(paths, plans, program, record, metrics, slots.journal)
    return Backups(
        maker=maker,
        verifier=verifier,
        jobs={
            "schedule": partial(run_schedule, maker, plans, ready_once),
            "daily": partial(run_daily, verifier, slots, plans, ready_once),
        },
    )
