"""Removes states of runs after `state.keep_days`, and the rest of interrupted removals."""

import asyncio
import time
from typing import Final

import structlog

from agentbox.adapters.runtime.slots import Slots
from agentbox.api import state_data
from agentbox.api.plan_source import PlanSource
from agentbox.core.slot_errors import AdapterError

SWEEP_SECONDS: Final = 60.0
_BATCH: Final = 50
_DAY: Final = 86400.0
_REMOVED_BY: Final = "state.keep_days"
_log = structlog.get_logger()


async def sweep(slots: Slots, plans: PlanSource, ready_once: asyncio.Event | None) -> None:
    """Runs until cancelled; with `ready_once`, in a booted box, from its first readiness on."""
    if ready_once is not None:
        await ready_once.wait()
    while True:
        try:
            while await _remove_due(slots, plans.current.state.keep_days):
                continue
        except AdapterError as error:
            _log.info("states not swept", reason=error.message)
        await asyncio.sleep(SWEEP_SECONDS)


async def _remove_due(slots: Slots, keep_days: int) -> bool:
    """Whether there may be more. A state that cannot be removed does not block others, and is
    retried.
    """
    due = await slots.agent_host.due_states(before=time.time() - keep_days * _DAY, limit=_BATCH)
    failed = 0
    for state in due:
        try:
            await state_data.remove_detached(slots, state, _REMOVED_BY, report_empty=False)
        except AdapterError as error:
            failed += 1
            _log.warning("state not removed", state_id=state.state_id, reason=error.message)
    return len(due) == _BATCH and not failed
