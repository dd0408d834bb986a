"""Clause O14 over many runs: the resources of an agent are released."""

import asyncio
import os
from pathlib import Path

from agentbox.contracts.orchestrator import Orchestrator
from agentbox.sandbox.launcher import tree
from agentbox_testkit.contracts.orchestrator_lab import (
    FOREVER,
    Lab,
    items,
    new_id,
    spec,
    wait_until_async,
)
from agentbox_testkit.wait import wait_until

_MIB = 1 << 20
_GROUP = 20  # concurrent agents
_STEP_RUNS = 80  # runs between two checks of memory growth
_MAX_GROWTH = _MIB  # bytes of growth per step that count as stable
_STEPS = 8
_MAX_POLLS, _STABLE_POLLS, _PAUSE = (
    200,
    4,
    0.05,
)  # polls at most, equal ones in a row, seconds between two


class LeakClause:
    """Uses the fixture `lab`, not started."""

    async def test_O14_many_runs_leave_nothing(self, lab: Lab) -> None:
        """After warming up, descriptors, memory and rows stay constant for `lab.run_counts[1]`
        spawns and exits. The `lab.run_counts[0]` runs before exceed the number of stored rows.
        """
        adapter = await lab.start()
        warmup_runs, measured_runs = lab.run_counts
        oldest = await adapter.spawn(spec(*FOREVER), request_id=new_id())
        await _run_agents(adapter, warmup_runs)
        await _warm_up(adapter, lab.root_pid)
        before = await _stable_usage(lab.root_pid), len((await adapter.list(limit=500)).items)
        await _run_agents(adapter, measured_runs)
        await wait_until(
            lambda: _usage(lab.root_pid)[0] <= before[0][0] + 2, "descriptors are closed"
        )
        assert (await _stable_usage(lab.root_pid))[1] <= before[0][1] + 4 * _MIB

        await wait_until_async(lambda: _has_rows(adapter, before[1]), "ended agents are removed")
        await wait_until(lambda: not _zombies(lab.root_pid), "no zombie process remains")
        await adapter.terminate(oldest, grace_s=0)
        await wait_until_async(
            lambda: _has_rows(adapter, before[1] - 1),
            "one more agent has ended and one row is removed",
        )
        assert (await adapter.get(oldest.agent_id)).state == "exited", (
            "the agent that ended last is kept"
        )


async def _has_rows(adapter: Orchestrator, count: int) -> bool:
    return len((await adapter.list(limit=500)).items) == count


async def _warm_up(adapter: Orchestrator, root: int) -> None:
    """Returns when memory is stable: rows, caches and thread heaps have reached their size. Returns
    also if it never is; the clause detects that.
    """
    for _ in range(_STEPS):
        _, before = await _stable_usage(root)
        await _run_agents(adapter, _STEP_RUNS)
        if (await _stable_usage(root))[1] <= before + _MAX_GROWTH:
            return


async def _stable_usage(root: int) -> tuple[int, int]:
    """Return the stable usage: a backend starts and ends processes for a short time after the last
    agent.
    """
    usage, repeats = _usage(root), 0
    for _ in range(_MAX_POLLS):
        await asyncio.sleep(_PAUSE)
        usage, previous = _usage(root), usage
        repeats = repeats + 1 if usage == previous else 0
        if repeats == _STABLE_POLLS:
            break
    return usage


async def _run_agents(adapter: Orchestrator, count: int) -> None:
    """Spawns in groups and waits for each group."""
    for _ in range(count // _GROUP):
        handles = await asyncio.gather(
            *(adapter.spawn(spec("true"), request_id=new_id()) for _ in range(_GROUP))
        )
        await asyncio.gather(*(items(adapter, handle.agent_id) for handle in handles))


def _usage(pid: int) -> tuple[int, int]:
    """Return descriptors and bytes of memory of the backend and its launcher."""
    table = tree.scan()
    rows = [table[pid], *tree.descendants(table, [pid])]
    return sum(_descriptors(row.pid) for row in rows), sum(row.rss for row in rows) * os.sysconf(
        "SC_PAGE_SIZE"
    )


def _descriptors(pid: int) -> int:
    """Return the number of open descriptors, 0 for an ended process."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def _zombies(pid: int) -> list[int]:
    return [row.pid for row in tree.descendants(tree.scan(), [pid]) if row.state == "Z"]
