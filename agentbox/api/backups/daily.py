"""The work on backups that is done once a day: a share of the repository is verified, and the
journal is pruned.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Final

import structlog

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.backups.journal_pruning import prune_journal
from agentbox.api.backups.maker import SCHEDULE
from agentbox.api.backups.record import BackupRecord
from agentbox.api.backups.verification import SnapshotVerifier
from agentbox.api.plan_source import PlanSource
from agentbox.core import clock
from agentbox.core.slot_errors import AdapterError
from agentbox.plan.model import Plan

_EVERY: Final = timedelta(days=1)
_LOOK_SECONDS: Final = 60.0
_AGAIN_SECONDS: Final = 3600.0  # after a failure
_log = structlog.get_logger()


def is_due(record: BackupRecord, now: datetime) -> bool:
    """A day after the last time; also if that lies in the future, of a clock that was wrong."""
    last = record.checked_at
    return last is None or not timedelta(0) <= now - last < _EVERY


async def run_daily(
    verifier: SnapshotVerifier, slots: Slots, plans: PlanSource, ready_once: asyncio.Event | None
) -> None:
    """Until cancelled; with `ready_once`, in a booted box, from its first readiness on. What fails
    is logged and journalled, and never ends it.
    """
    if ready_once is not None:
        await ready_once.wait()
    while True:
        seconds = _LOOK_SECONDS
        if plans.current.backup.is_set_up and is_due(verifier.record, clock.now()):
            seconds = await _work(verifier, slots, plans.current)
        await asyncio.sleep(seconds)


async def _work(verifier: SnapshotVerifier, slots: Slots, plan: Plan) -> float:
    """Returns in how many seconds to look again."""
    table = plan.backup
    try:
        await verifier.verify_share(table.verify_percent, SCHEDULE)
        if table.prune_journal:
            await prune_journal(slots, verifier, table.journal_days, SCHEDULE)
    except (AdapterError, OSError) as error:
        _log.warning("the daily work on backups is not done", reason=str(error))
        await verifier.failed(str(error), SCHEDULE)
        return _AGAIN_SECONDS
    except Exception as error:  # noqa: BLE001 - a bug does not end it
        _log.error("the daily work on backups is not done", exc_info=error)
        return _AGAIN_SECONDS
    return _LOOK_SECONDS
