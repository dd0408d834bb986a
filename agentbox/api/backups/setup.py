"""Builds what makes backups, and the job of the schedule."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from prometheus_client import CollectorRegistry

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.backups.maker import BackupMaker
from agentbox.api.backups.program import ChildProgram, SupervisedProgram
from agentbox.api.backups.record import BackupRecord
from agentbox.api.backups.schedule import run_schedule
from agentbox.api.metrics.backup_metrics import BackupMetrics
from agentbox.api.plan_source import PlanSource
from agentbox.core.paths import Paths


def make_backups(
    paths: Paths,
    plans: PlanSource,
    slots: Slots,
    registry: CollectorRegistry,
    ready_once: asyncio.Event | None,
) -> tuple[BackupMaker, Callable[[], Awaitable[None]]]:
    """`ready_once` is set when a booted box is ready for the first time; None without a boot."""
    record = BackupRecord(paths)
    succeeded_at = record.succeeded_at
    metrics = BackupMetrics(registry, succeeded_at.timestamp() if succeeded_at else None)
    program = ChildProgram(paths) if ready_once is None else SupervisedProgram(paths)
    maker = BackupMaker(paths, plans, slots, program, record, metrics)
    return maker, partial(run_schedule, maker, plans, ready_once)
