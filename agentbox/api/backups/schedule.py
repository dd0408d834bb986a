"""Makes backups by `backup.schedule`. A run that was missed is made once, after the next boot."""

import asyncio
from datetime import datetime, timedelta
from typing import Final

import structlog

from agentbox.api.backups.cron import next_after
from agentbox.api.backups.maker import SCHEDULE, BackupMaker
from agentbox.api.backups.record import BackupRecord
from agentbox.api.plan_source import PlanSource
from agentbox.core import clock
from agentbox.core.slot_errors import AdapterError

TAG: Final = "scheduled"
_LOOK_SECONDS: Final = 20.0  # at most, since keys and the clock may change
_AHEAD: Final = timedelta(hours=1)
_log = structlog.get_logger()


def is_unusable(attempted_at: datetime | None, now: datetime) -> bool:
    """True for an attempt that the schedule cannot count from: there was none, or it was made by a
    clock that was ahead, so that what follows it is days away.
    """
    return attempted_at is None or attempted_at > now + _AHEAD


def due_at(schedule: str, attempted_at: datetime | None, now: datetime) -> datetime | None:
    """When the next backup is to be made, which may be past; None for never. A last one in the
    future, of a clock that was wrong, counts as now.
    """
    if not schedule or attempted_at is None:
        return None
    return next_after(schedule, now if attempted_at > now + _AHEAD else attempted_at)


def overdue_seconds(schedule: str, record: BackupRecord, now: datetime) -> float:
    """For how long there is no backup since the schedule asked for one; 0 if there is, or without a
    schedule. Attempts that failed do not count.
    """
    due = due_at(schedule, record.succeeded_at or record.since, now)
    return 0.0 if due is None else max(0.0, (now - due).total_seconds())


async def run_schedule(
    maker: BackupMaker, plans: PlanSource, ready_once: asyncio.Event | None
) -> None:
    """Until cancelled; with `ready_once`, in a booted box, from its first readiness on. What fails
    is logged, and never ends the schedule.
    """
    try:
        await asyncio.to_thread(maker.clean)
    except OSError as error:
        _log.warning("what a backup left is not removed", reason=str(error))
    if ready_once is not None:
        await ready_once.wait()
    while True:
        seconds = await _look(maker, plans)
        await asyncio.sleep(seconds)


async def _look(maker: BackupMaker, plans: PlanSource) -> float:
    """Makes the backup that is due; returns in how many seconds to look again."""
    schedule, now = plans.current.backup.schedule, clock.now()
    if schedule and is_unusable(maker.record.attempted_at, now):
        await _note_attempt(maker)
    due = due_at(schedule, maker.record.attempted_at, now)
    if due is None:
        return _LOOK_SECONDS
    if due <= now:
        await _make(maker)
    return min(max((due - clock.now()).total_seconds(), 1.0), _LOOK_SECONDS)


async def _make(maker: BackupMaker) -> None:
    """The next run is that of the schedule, however this one ends: it is journalled and counted."""
    try:
        await maker.create(TAG, SCHEDULE)
        await maker.wait()
    except AdapterError as error:
        _log.warning("scheduled backup not made", reason=error.message)
        await _note_attempt(maker)  # also of a backup that was refused before it began
    except Exception as error:  # noqa: BLE001 - a bug does not end the schedule
        _log.error("scheduled backup not made", exc_info=error)
        await _note_attempt(maker)


async def _note_attempt(maker: BackupMaker) -> None:
    """It counts in this process even if it cannot be written."""
    try:
        await asyncio.to_thread(maker.record.attempted)
    except OSError as error:
        _log.warning("the time of a backup is not recorded", reason=str(error))
