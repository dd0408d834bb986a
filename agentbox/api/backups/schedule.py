"""Makes backups by `backup.schedule`. A run that was missed is made once, after the next boot."""

import asyncio
from datetime import datetime, timedelta
from typing import Final

import structlog

from agentbox.api.backups.cron import next_after
from agentbox.api.backups.maker import SCHEDULE, BackupMaker
from agentbox.api.plan_source import PlanSource
from agentbox.core import clock
from agentbox.core.slot_errors import AdapterError

TAG: Final = "scheduled"
_LOOK_SECONDS: Final = 20.0  # at most, since keys and the clock may change
_AHEAD: Final = timedelta(hours=1)
_log = structlog.get_logger()


def due_at(schedule: str, attempted_at: datetime | None, now: datetime) -> datetime | None:
    """When the next backup is to be made, which may be past; None for never. A last one in the
    future, of a clock that was wrong, counts as now.
    """
    if not schedule or attempted_at is None:
        return None
    return next_after(schedule, now if attempted_at > now + _AHEAD else attempted_at)


async def run_schedule(
    maker: BackupMaker, plans: PlanSource, ready_once: asyncio.Event | None
) -> None:
    """Until cancelled; with `ready_once`, in a booted box, from its first readiness on."""
    try:
        await asyncio.to_thread(maker.clean)
        if ready_once is not None:
            await ready_once.wait()
        await _follow(maker, plans)
    finally:
        await maker.stop()


async def _follow(maker: BackupMaker, plans: PlanSource) -> None:
    while True:
        schedule, now = plans.current.backup.schedule, clock.now()
        if schedule and maker.record.attempted_at is None:
            await asyncio.to_thread(maker.record.attempted)
        due = due_at(schedule, maker.record.attempted_at, now)
        if due is not None and due <= now:
            await _make(maker)
        left = _LOOK_SECONDS if due is None else (due - clock.now()).total_seconds()
        await asyncio.sleep(min(max(left, 1.0), _LOOK_SECONDS))


async def _make(maker: BackupMaker) -> None:
    try:
        await maker.create(TAG, SCHEDULE)
    except AdapterError as error:  # journalled, counted; the next run is that of the schedule
        _log.warning("scheduled backup not made", reason=error.message)
    else:
        await maker.wait()
