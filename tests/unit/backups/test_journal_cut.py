"""What a cut takes of a journal into which other boxes deliver."""

import asyncio
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support.cut_slots import open_slots, plan_of_slots, staged_of

from agentbox.adapters.events.journal import recovery
from agentbox.adapters.runtime.adapter import SystemClock
from agentbox.api.backups.cut import Cutter
from agentbox.contracts.events import NewEvent
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths

BOX = "other-box"
OWN = [NewEvent(type="test.work", data={"n": n}) for n in range(3)]


class LaterClock(SystemClock):
    """The clock of the machine, by some days fast."""

    days = 0

    def now(self) -> datetime:
        return super().now() + timedelta(days=self.days)


async def test_a_restored_sink_knows_what_it_had_of_each_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one whose last record lies before those that an opening reads: nothing is stored
    twice, and no gap is told."""
    monkeypatch.setattr(recovery, "MAX_KEYS", 0)
    sender, sink, restored = (Paths(tmp_path / name) for name in ("sender", "sink", "restored"))
    async with open_slots(sender.prefix) as slots:
        await slots.events.append(OWN)
        records = (await slots.events.read(limit=10)).events
    clock = LaterClock()
    async with open_slots(sink.prefix, clock) as slots:
        assert (await slots.events.receive(BOX, records[:2])).stored == 2
        clock.days = 1  # which begins another file
        await slots.events.append(OWN)
        cutter = Cutter(sink, slots)
        cut = await cutter.prepare(uuid7(), "", plan_of_slots())
        await cutter.take(cut)
        await slots.events.receive(BOX, records[2:])  # after the cut: not a part of it
        await asyncio.to_thread(staged_of, cut, sink)
        await asyncio.to_thread(cut.close)
    restored.state.parent.mkdir(parents=True)
    shutil.move(sink.backup_staging / cut.id / "state", restored.state)
    async with open_slots(restored.prefix) as slots:
        before = await slots.events.head()
        again = await slots.events.receive(BOX, records[:2])
        assert (again.stored, again.watermark) == (0, records[1].seq)
        assert await slots.events.head() == before
        assert (await slots.events.receive(BOX, records)).stored == len(records) - 2
