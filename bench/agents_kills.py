"""Each supervised program killed once, under load: how soon `/ready` answers 200 again, and what became of the agents."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from agentbox.client import ApiError, BoxUnreachable

PROGRAMS = ("management-api", "gateway", "agent-host")
_PATIENCE = 60.0
_SETTLE = 5.0  # seconds of load before each kill


@dataclass
class Kill:
    """One kill. `agents`: how many were running before, by their state afterwards."""

    program: str
    seconds: float
    agents: dict[str, int] = field(default_factory=dict)


async def kill_each(box: Any) -> list[Kill]:
    """Raises AssertionError when the box is not ready again within a minute."""
    found = []
    for program in PROGRAMS:
        await asyncio.sleep(_SETTLE)
        before = await asyncio.to_thread(_running, box)
        pid = await asyncio.to_thread(box.pid, program)
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        while not await asyncio.to_thread(_back, box, program, pid):
            assert time.monotonic() < began + _PATIENCE, f"{program} killed: not ready within {_PATIENCE:g} s"
            await asyncio.sleep(0.02)
        took = time.monotonic() - began
        found.append(Kill(program, took, dict(Counter(await asyncio.to_thread(_states, box, before)))))
        print(f"{program} killed: ready again after {took:.2f} s; agents that ran: {found[-1].agents}")
    return found


def _back(box: Any, program: str, before: int) -> bool:
    try:
        return box.pid(program) not in (0, before) and box.ready()
    except (ApiError, BoxUnreachable):
        return False


def _running(box: Any) -> list[str]:
    agents, _ = box.client.agents.list(limit=500, state="running")
    return [one.agent_id for one in agents]


def _states(box: Any, ids: list[str]) -> list[str]:
    states = []
    for one in ids:
        try:
            states.append(box.client.agents.get(one).state)
        except ApiError as error:
            states.append(f"HTTP {error.status}")
    return states
