"""Each supervised program killed in turn, under load: how soon `/ready` answered 200 again, and what became of the agents."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from agentbox.client import ApiError, BoxUnreachable

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/api"))

from raw import ask
from ten_load import NEIGHBOUR, Sample
from ten_writers import Writers
from test_supervised import Sealed

AFTER = 5.0  # seconds that a kill's window goes on once the box is ready again: who waited asks again, agents are started anew
_PATIENCE = 60.0
_HURRY = 1.0  # seconds before a kill from which the writers make no pause
_HOST = "agent-host"  # which agents do not outlive


@dataclass
class Kill:
    """One kill. `at` by time.perf_counter; `seconds` until ready; `agents`: how many ran before, by their state after."""

    program: str
    at: float
    seconds: float
    agents: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def programs(box: Sealed) -> list[str]:
    """All that the plan keeps running, in the order in which they start."""
    return [
        one.name for one in sorted(box.plan.programs, key=lambda one: one.priority) if not one.once
    ]


async def kill_in_turn(box: Sealed, writers: Writers, seconds: float, rounds: int) -> list[Kill]:
    """Kills each program `rounds` times within about `seconds`. Raises AssertionError when the box is not ready again within a
    minute."""
    turns = [name for _ in range(rounds) for name in programs(box)]
    found, began = [], time.perf_counter()
    for number, program in enumerate(turns):
        due = began + number * seconds / len(turns)
        await asyncio.sleep(max(0.0, due - time.perf_counter() - _HURRY))
        writers.hurry = True
        await asyncio.sleep(_HURRY)
        found.append(await _kill(box, program))
        writers.hurry = False
        print(f"{program} killed: ready again after {found[-1].seconds:.2f} s; agents that ran: {found[-1].agents}", flush=True)  # fmt: skip
        await asyncio.sleep(AFTER)
    return found


async def _kill(box: Sealed, program: str) -> Kill:
    before = await asyncio.to_thread(_running, box)
    pid = await asyncio.to_thread(box.pid, program)
    moment = time.time()
    os.kill(pid, signal.SIGKILL)
    at = time.perf_counter()
    while not await asyncio.to_thread(_ready_since, box, moment):
        assert time.perf_counter() < at + _PATIENCE, (
            f"{program} killed: not ready within {_PATIENCE:g} s"
        )
        await asyncio.sleep(0.02)
    made = Kill(program, at, time.perf_counter() - at)
    after = await asyncio.to_thread(_states, box, list(before))
    made.agents = dict(Counter(after.values()))
    for agent_id, state in after.items():
        neighbour = before[agent_id].startswith(NEIGHBOUR)
        if state.startswith("HTTP"):
            made.wrong.append(
                f"{program} killed: agent {before[agent_id]}, which had been started, is {state}"
            )
        elif neighbour and program != _HOST and state != "running":
            made.wrong.append(f"{program} killed: {before[agent_id]} is {state}, must run on")
        elif neighbour and program == _HOST and state != "lost":
            made.wrong.append(f"{program} killed: {before[agent_id]} is {state}, must be lost")
    return made


def _ready_since(box: Sealed, moment: float) -> bool:
    """Ready, and not still so from before that moment (Unix seconds)."""
    try:
        found = ask(box.plan.api.port, "GET /ready HTTP/1.1")
        return (
            found.status == 200
            and datetime.fromisoformat(found.json()["since"]).timestamp() > moment
        )
    except (OSError, ValueError):
        return False


def _running(box: Sealed) -> dict[str, str]:
    """Names by id."""
    agents = box.client.agents.list(limit=500, state="running").items
    return {one.agent_id: one.spec.name for one in agents}


def _states(box: Sealed, ids: Sequence[str]) -> dict[str, str]:
    return {one: _state(box, one) for one in ids}


def _state(box: Sealed, agent_id: str) -> str:
    try:
        return str(box.client.agents.get(agent_id).state)
    except ApiError as error:
        return f"HTTP {error.status}"
    except BoxUnreachable:
        return "HTTP unreachable"


def apart(
    samples: Sequence[Sample], kills: Sequence[Kill]
) -> tuple[list[float], dict[str, list[float]]]:
    """Values that no window of a kill touched, and by program those of its windows. A value is as many milliseconds after its
    moment, or at it, as what it says."""
    far: list[float] = []
    near: dict[str, list[float]] = {one.program: [] for one in kills}
    for at, value in samples:
        if (kill := in_window(at, at + value / 1000, kills)) is None:
            far.append(value)
        else:
            near[kill.program].append(value)
    return far, near


def in_window(since: float, until: float, kills: Sequence[Kill]) -> Any:
    """The kill whose window that time touches, or None."""
    return next(
        (one for one in kills if until >= one.at and since <= one.at + one.seconds + AFTER), None
    )
