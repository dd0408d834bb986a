"""Clause O14 over many lives: what an agent took is given back."""

import asyncio
import os
from pathlib import Path

from agentbox.contracts.orchestrator import Orchestrator
from agentbox.sandbox.launcher import tree
from agentbox.testing.contracts.orchestrator_lab import FOREVER, Lab, items, new_id, spec, until_async
from agentbox.testing.until import until

_MIB = 1 << 20
_GROUP = 20  # agents at once
_STEP = 80  # lives between two looks at whether memory is at its level
_LEVEL = _MIB  # bytes that a step may add then
_STEPS = 8
_LOOKS, _STEADY, _PAUSE = 200, 4, 0.05  # looks at most, equal ones in a row, seconds between two


class LivesClause:
    """Uses the fixture `lab`, which is not started."""

    async def test_O14_a_thousand_lives_leave_nothing(self, lab: Lab) -> None:
        """Once all that is kept is full, descriptors, memory and rows stay where they are for `lab.lives[1]` spawns and
        exits. The `lab.lives[0]` before them are more than the rows that are kept."""
        adapter = await lab.start()
        first, then = lab.lives
        oldest = await adapter.spawn(spec(*FOREVER), request_id=new_id())
        await _cycles(adapter, first)
        await _settled(adapter, lab.root_pid)
        before = await _at_rest(lab.root_pid), len((await adapter.list(limit=500)).items)
        await _cycles(adapter, then)
        await until(lambda: _held(lab.root_pid)[0] <= before[0][0] + 2, "descriptors are back")
        assert (await _at_rest(lab.root_pid))[1] <= before[0][1] + 4 * _MIB

        await until_async(lambda: _rows(adapter, before[1]), "what is over is forgotten")
        await until(lambda: not _zombies(lab.root_pid), "every process that ended was waited for")
        await adapter.terminate(oldest, grace_s=0)
        await until_async(lambda: _rows(adapter, before[1] - 1), "one more is over, and one forgotten")
        assert (await adapter.get(oldest.agent_id)).state == "exited", "what ended last is known longest"


async def _rows(adapter: Orchestrator, count: int) -> bool:
    return len((await adapter.list(limit=500)).items) == count


async def _settled(adapter: Orchestrator, root: int) -> None:
    """Returns once memory is at its level: rows, caches and the heaps of threads have then grown as far as they do. One that
    grows on and on is not waited for; the clause sees it."""
    for _ in range(_STEPS):
        _, before = await _at_rest(root)
        await _cycles(adapter, _STEP)
        if (await _at_rest(root))[1] <= before + _LEVEL:
            return


async def _at_rest(root: int) -> tuple[int, int]:
    """What is held once nothing moves: a backend ends and makes processes of its own up to a moment after the last agent."""
    held, steady = _held(root), 0
    for _ in range(_LOOKS):
        await asyncio.sleep(_PAUSE)
        held, last = _held(root), held
        steady = steady + 1 if held == last else 0
        if steady == _STEADY:
            break
    return held


async def _cycles(adapter: Orchestrator, count: int) -> None:
    """Spawns in groups, each group to its end."""
    for _ in range(count // _GROUP):
        handles = await asyncio.gather(*(adapter.spawn(spec("true"), request_id=new_id()) for _ in range(_GROUP)))
        await asyncio.gather(*(items(adapter, handle.agent_id) for handle in handles))


def _held(pid: int) -> tuple[int, int]:
    """Descriptors and bytes of memory of the backend and its launcher."""
    table = tree.scan()
    rows = [table[pid], *tree.descendants(table, [pid])]
    return sum(_descriptors(row.pid) for row in rows), sum(row.rss for row in rows) * os.sysconf("SC_PAGE_SIZE")


def _descriptors(pid: int) -> int:
    """None of a process that is gone."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def _zombies(pid: int) -> list[int]:
    return [row.pid for row in tree.descendants(tree.scan(), [pid]) if row.state == "Z"]
