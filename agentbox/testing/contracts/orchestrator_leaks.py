"""Clause O14 over many lives: what an agent took is given back."""

import asyncio
import os
from pathlib import Path

from agentbox.contracts.orchestrator import Orchestrator
from agentbox.sandbox.launcher import tree
from agentbox.testing.contracts.orchestrator_lab import (
    FOREVER,
    Lab,
    items,
    new_id,
    spec,
    wait_until_async,
)
from agentbox.testing.wait import wait_until

_MIB = 1 << 20
_GROUP = 20  # agents at once
_STEP_RUNS = 80  # lives between two looks at whether memory is at its level
_MAX_GROWTH = _MIB  # bytes that a step may add then
_STEPS = 8
_MAX_POLLS, _STABLE_POLLS, _PAUSE = (
    200,
    4,
    0.05,
)  # looks at most, equal ones in a row, seconds between two


class LeakClause:
    """Uses the fixture `lab`, which is not started."""

    async def test_O14_a_thousand_lives_leave_nothing(self, lab: Lab) -> None:
        """Once all that is kept is full, descriptors, memory and rows stay where they are for `lab.lives[1]` spawns and
        exits. The `lab.lives[0]` before them are more than the rows that are kept."""
        adapter = await lab.start()
        warmup_runs, measured_runs = lab.run_counts
        oldest = await adapter.spawn(spec(*FOREVER), request_id=new_id())
        await _run_agents(adapter, warmup_runs)
        await _warm_up(adapter, lab.root_pid)
        before = await _stable_usage(lab.root_pid), len((await adapter.list(limit=500)).items)
        await _run_agents(adapter, measured_runs)
        await wait_until(
            lambda: _usage(lab.root_pid)[0] <= before[0][0] + 2, "descriptors are back"
        )
        assert (await _stable_usage(lab.root_pid))[1] <= before[0][1] + 4 * _MIB

        await wait_until_async(lambda: _has_rows(adapter, before[1]), "what is over is forgotten")
        await wait_until(
            lambda: not _zombies(lab.root_pid), "every process that ended was waited for"
        )
        await adapter.terminate(oldest, grace_s=0)
        await wait_until_async(
            lambda: _has_rows(adapter, before[1] - 1), "one more is over, and one forgotten"
        )
        assert (await adapter.get(oldest.agent_id)).state == "exited", (
            "what ended last is known longest"
        )


async def _has_rows(adapter: Orchestrator, count: int) -> bool:
    return len((await adapter.list(limit=500)).items) == count


async def _warm_up(adapter: Orchestrator, root: int) -> None:
    """Returns once memory is at its level: rows, caches and the heaps of threads have then grown as far as they do. One that
    grows on and on is not waited for; the clause sees it."""
    for _ in range(_STEPS):
        _, before = await _stable_usage(root)
        await _run_agents(adapter, _STEP_RUNS)
        if (await _stable_usage(root))[1] <= before + _MAX_GROWTH:
            return


async def _stable_usage(root: int) -> tuple[int, int]:
    """What is held once nothing moves: a backend ends and makes processes of its own up to a moment after the last agent."""
    usage, repeats = _usage(root), 0
    for _ in range(_MAX_POLLS):
        await asyncio.sleep(_PAUSE)
        usage, previous = _usage(root), usage
        repeats = repeats + 1 if usage == previous else 0
        if repeats == _STABLE_POLLS:
            break
    return usage


async def _run_agents(adapter: Orchestrator, count: int) -> None:
    """Spawns in groups, each group to its end."""
    for _ in range(count // _GROUP):
        handles = await asyncio.gather(
            *(adapter.spawn(spec("true"), request_id=new_id()) for _ in range(_GROUP))
        )
        await asyncio.gather(*(items(adapter, handle.agent_id) for handle in handles))


def _usage(pid: int) -> tuple[int, int]:
    """Descriptors and bytes of memory of the backend and its launcher."""
    table = tree.scan()
    rows = [table[pid], *tree.descendants(table, [pid])]
    return sum(_descriptors(row.pid) for row in rows), sum(row.rss for row in rows) * os.sysconf(
        "SC_PAGE_SIZE"
    )


def _descriptors(pid: int) -> int:
    """None of a process that is gone."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def _zombies(pid: int) -> list[int]:
    return [row.pid for row in tree.descendants(tree.scan(), [pid]) if row.state == "Z"]
