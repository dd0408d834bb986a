"""How long writes wait for a cut: no longer than its deadline, and not for one that was given up."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import apsw
import pytest
from agentbox_testkit.wait import wait_until
from support.cut_slots import open_slots, plan_of_slots

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.backups.cut import Cutter, OpenCut
from agentbox.contracts.beads import BeadSpec
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import BackupBusy

STORES = ("orchestrator/agents.db", "sessions/sessions.db", "mcp-host/mcp.db")


@contextmanager
def locked_stores(paths: Paths) -> Iterator[list[apsw.Connection]]:
    """Three stores that another program has locked for readers too."""
    opened = []
    for name in STORES:
        path = paths.state / name
        path.parent.mkdir(parents=True, exist_ok=True)
        opened.append(apsw.Connection(str(path)))
        opened[-1].execute("CREATE TABLE agents (agent_id, over); BEGIN EXCLUSIVE")
    try:
        yield opened
    finally:
        for connection in opened:
            connection.close()


@asynccontextmanager
async def prepared(paths: Paths, longest: float) -> AsyncIterator[tuple[Slots, Cutter, OpenCut]]:
    """A cut before its moment."""
    async with open_slots(paths.prefix) as slots:
        cutter = Cutter(paths, slots, wait=60, longest=longest)
        cut = await cutter.prepare(uuid7(), "", plan_of_slots())
        try:
            yield slots, cutter, cut
        finally:
            await asyncio.to_thread(cut.close)


async def test_locked_stores_fail_a_cut_by_one_deadline(tmp_path: Path) -> None:
    """Not by one for each store; the backup is refused as busy, and writes go on."""
    paths = Paths(tmp_path)
    with locked_stores(paths):
        async with prepared(paths, longest=0.2) as (slots, cutter, cut):
            with pytest.raises(BackupBusy, match=r"the stores did not begin within 0.2 s"):
                await cutter.take(cut)
            await slots.beads.create_epic(BeadSpec(title="goes on", creator="test"))
            assert cut.seq == 0


async def test_a_cancelled_cut_lets_writes_go_on_at_once(tmp_path: Path) -> None:
    """Its thread still waits for a store; the call ends when that does, so that nothing is closed
    beneath it."""
    paths = Paths(tmp_path)
    with locked_stores(paths) as locks:
        async with prepared(paths, longest=60) as (slots, cutter, cut):
            taking = asyncio.create_task(cutter.take(cut))
            await wait_until(lambda: not slots.gate._open.is_set(), "writes pause")
            taking.cancel()
            await slots.beads.create_epic(BeadSpec(title="goes on", creator="test"))
            assert not taking.done()
            taking.cancel()  # impatient
            for lock in locks:
                lock.execute("COMMIT")
            with pytest.raises(asyncio.CancelledError):
                await taking
