"""The end of agent-host when the whole box goes down: the API ends the agents, and reads how they ended."""

import asyncio
import contextlib
from collections.abc import Collection

from agentbox.agents.registry.table import Table
from agentbox.core.paths import Paths

ASK_SECONDS = 2.0  # for the API to ask each agent to end; then the grace of the slot follows
STAY_SECONDS = 7.0  # since the stop was asked for; supervisord allows 8 (plan/programs.py)
_SUPERVISOR_SECONDS = 1.0


async def until_asked(table: Table, paths: Paths, callers: Collection[object]) -> bool:
    """Waits until somebody has asked every agent to end, so that the journal has each intent and each bead its receipt.

    False at once when nobody would: no caller is connected, or supervisord stops this program alone.
    """
    if not callers:
        return False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ASK_SECONDS):
            if not await asyncio.to_thread(_box_goes_down, paths):
                return False
            await asyncio.gather(*(life.asked_to_end() for life in list(table.lives.values())))
    return True


async def until_left(callers: Collection["asyncio.Task[None]"], deadline: float) -> None:
    """Waits until every caller has closed its connection. `deadline` is of the loop's clock."""
    left = deadline - asyncio.get_running_loop().time()
    if callers and left > 0:
        await asyncio.wait(callers, timeout=left)


def _box_goes_down(paths: Paths) -> bool:
    """False while supervisord runs on, and where there is none: a bare program waits for nobody."""
    from agentbox.box.supervision.rpc import SupervisorClient, SupervisorUnavailable  # slow, and needed at the end only

    try:
        return SupervisorClient(paths, _SUPERVISOR_SECONDS).state() != "RUNNING"
    except (SupervisorUnavailable, OSError):
        return False
