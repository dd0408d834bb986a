"""End of agent-host when the whole box stops: the API ends the agents and reads their exits."""

import asyncio
import contextlib
from collections.abc import Collection

from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.core.paths import Paths

REQUEST_SECONDS = 2.0  # for the API to terminate each agent; then the grace of the slot follows
LINGER_SECONDS = 7.0  # since the stop was requested; supervisord allows 8 (plan/programs.py)
_SUPERVISOR_SECONDS = 1.0


async def wait_for_requests(
    registry: AgentRegistry, paths: Paths, callers: Collection[object]
) -> bool:
    """Wait until every agent has been asked to end, so that the journal has each intent and each
    bead its receipt.

    False at once if no caller is connected, or if supervisord stops this program alone.
    """
    if not callers:
        return False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REQUEST_SECONDS):
            if not await asyncio.to_thread(_is_box_stopping, paths):
                return False
            await asyncio.gather(
                *(
                    runner.wait_for_stop()
                    for runner in list(registry.runners.values())
                    if runner.entry.kind != "session"  # agent-host suspends them
                )
            )
    return True


async def wait_for_disconnects(callers: Collection["asyncio.Task[None]"], deadline: float) -> None:
    """Wait until every caller has closed its connection. `deadline` is in the loop's time."""
    remaining = deadline - asyncio.get_running_loop().time()
    if callers and remaining > 0:
        await asyncio.wait(callers, timeout=remaining)


def _is_box_stopping(paths: Paths) -> bool:
    """False while supervisord keeps running, and without supervisord."""
    from agentbox.box.supervision.rpc import (
        SupervisorClient,
        SupervisorUnavailable,
    )  # slow to import, needed at the end only

    try:
        return SupervisorClient(paths, _SUPERVISOR_SECONDS).state() != "RUNNING"
    except (SupervisorUnavailable, OSError):
        return False
