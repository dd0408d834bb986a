"""The cut of a box under load: what is staged is one moment of all slots."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from support.cut_slots import open_slots, plan_of_slots, staged_of

from agentbox.adapters.events.journal.export import read_events
from agentbox.adapters.events.journal.verify import verify
from agentbox.adapters.runtime.slots import Slots
from agentbox.api.backups.cut import Cutter, OpenCut
from agentbox.contracts.beads import BeadSpec
from agentbox.contracts.events import NewEvent
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import BackupBusy

WRITERS = 10
BODY = 20_000  # bytes


async def contents(slots: Slots) -> dict[str, Any]:
    """All beads, bodies and memory entries."""
    beads, pods, memory = {}, {}, {}
    cursor = None
    while True:
        page = await slots.beads.list(limit=500, cursor=cursor)
        beads |= {bead.id: bead for bead in page.items}
        if (cursor := page.next_cursor) is None:
            break
    listed = [f"load/{n}" for n in range(WRITERS)] + [f"gone/{n}" for n in range(WRITERS)]
    container = {
        meta.path
        for name in ("load/", "gone/")
        for meta in (await slots.pods.list(name, limit=500)).items
    }
    for path in (path for path in listed if path in container):
        found = await slots.pods.read(path)
        pods[path] = b"".join([piece async for piece in found.body]), found.meta.content_type
    for n in range(WRITERS):
        if (entry := await slots.memory.retrieve(f"key-{n}")) is not None:
            memory[entry.key] = entry.value
    return {"beads": beads, "pods": pods, "memory": memory}


class Load:
    """Writers of all slots; `acknowledged` has the last number of each that was."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.started = dict.fromkeys(range(WRITERS), 0)
        self.acknowledged = dict.fromkeys(range(WRITERS), 0)
        self._ending = False
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Load":
        self._tasks = [asyncio.create_task(self._write(n)) for n in range(WRITERS)]
        await self.progress(1)
        return self

    async def __aexit__(self, *_failure: object) -> None:
        self._ending = True
        await asyncio.gather(*self._tasks)

    async def progress(self, rounds: int) -> None:
        """Waits until each writer has done so many rounds more."""
        before = dict(self.acknowledged)
        while any(self.acknowledged[n] < before[n] + rounds for n in before):
            for task in self._tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.01)

    async def _write(self, n: int) -> None:
        while not self._ending:
            number = self.started[n] = self.started[n] + 1
            bead, _ = await self._slots.beads.create_epic(
                BeadSpec(title=f"{n}:{number}", creator="test")
            )
            body = f"{n}:{number}:".encode() * (BODY // 10)
            await self._slots.pods.write(f"load/{n}", body, content_type="text/plain")
            await self._slots.pods.write(f"gone/{n}", _pieces(body), content_type="text/plain")
            await self._slots.memory.store(f"key-{n}", {"number": number}, text=f"note {number}")
            await self._slots.events.append(
                [NewEvent(type="test.written", data={"writer": n, "number": number})]
            )
            if number % 3 == 0:
                await self._slots.pods.delete(f"gone/{n}")
                await self._slots.beads.close_bead(bead.id)
            self.acknowledged[n] = number


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 4096):
        yield body[start : start + 4096]
        await asyncio.sleep(0)


class SeenCutter(Cutter):
    """Reads all slots while writes pause, before the transactions begin."""

    seen: dict[str, Any]

    async def _begin(self, cut: OpenCut, deadline: float) -> None:
        self.seen = await contents(self._slots)
        await super()._begin(cut, deadline)


async def test_what_is_staged_under_load_is_one_moment(tmp_path: Path) -> None:
    """Ten writers go on over all slots while a cut is taken and staged. Each staged store is sound;
    beads, pods and memory, opened again, are what they were in the pause; the journal ends with the
    record of the cut and has each event that was acknowledged before."""
    paths = Paths(tmp_path / "live")
    plan = plan_of_slots()
    async with open_slots(paths.prefix) as slots, Load(slots) as load:
        await load.progress(2)
        cutter = SeenCutter(paths, slots, wait=60, longest=60)  # of a busy machine
        cut = await cutter.prepare(uuid7(), "test", plan)
        before = dict(load.acknowledged)
        await cutter.take(cut)
        after = dict(load.started)
        await load.progress(2)  # bodies of the cut are replaced and deleted before they are staged
        staged = await asyncio.to_thread(staged_of, cut, paths)
        await load.progress(1)
        await asyncio.to_thread(cut.close)
        assert list((paths.slot("pods") / "held").iterdir()) == []

    target = paths.backup_staging / cut.id
    assert json.loads((target / "cut.json").read_bytes())["id"] == cut.id
    assert staged.partial == staged.changed == ()
    for name in staged.stores:
        connection = apsw.Connection(str(target / name), flags=apsw.SQLITE_OPEN_READONLY)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], name
        connection.close()

    report = verify(target / "state/events")
    assert (report.ok, report.last_seq) == (True, staged.seq), report
    events = list(read_events(target / "state/events"))
    assert (events[-1].type, events[-1].data["id"]) == ("backup.cut", cut.id)
    written = [event.data for event in events if event.type == "test.written"]
    last = {n: max(row["number"] for row in written if row["writer"] == n) for n in before}
    assert all(before[n] <= last[n] <= after[n] for n in before), (before, last, after)

    restored = tmp_path / "restored"
    shutil.copytree(target / "state", Paths(restored).state)
    async with open_slots(restored) as slots:
        assert await contents(slots) == cutter.seen
    assert staged.counts["beads"] == len(cutter.seen["beads"])
    assert staged.counts["pods"] == len(cutter.seen["pods"])


async def test_a_slow_upload_does_not_hold_up_a_cut(tmp_path: Path) -> None:
    """A body that is still being sent is written after the cut, and not in it."""
    paths, gone = Paths(tmp_path), asyncio.Event()
    async with open_slots(paths.prefix) as slots:

        async def slow() -> AsyncIterator[bytes]:
            yield b"first"
            sending.set()
            await gone.wait()
            yield b"second"

        sending = asyncio.Event()
        upload = asyncio.create_task(slots.pods.write("slow", slow()))
        await sending.wait()
        cutter = Cutter(paths, slots)
        cut = await cutter.prepare(uuid7(), "", plan_of_slots())
        await cutter.take(cut)
        gone.set()
        await upload
        staged = await asyncio.to_thread(staged_of, cut, paths)
        await asyncio.to_thread(cut.close)
        assert (await slots.pods.head("slow")).size == len("firstsecond")
    assert staged.counts["pods"] == 0
    objects = paths.backup_staging / cut.id / "state/pods/objects"
    assert list(objects.iterdir()) == []


async def test_a_write_that_takes_too_long_fails_the_cut_and_others_go_on(tmp_path: Path) -> None:
    """Three times 150 ms; then what waited goes on."""
    paths = Paths(tmp_path)
    async with open_slots(paths.prefix) as slots:
        await slots.gate.enter()  # as a call that does not end
        cutter = Cutter(paths, slots)
        cut = await cutter.prepare(uuid7(), "", plan_of_slots())
        with pytest.raises(BackupBusy, match="1 calls that write did not end within 150 ms"):
            await cutter.take(cut)
        bead, _ = await slots.beads.create_epic(BeadSpec(title="goes on", creator="test"))
        slots.gate.leave()
        await cutter.take(cut)
        await asyncio.to_thread(cut.close)
        assert (await slots.beads.show(bead.id)).title == "goes on"


async def test_a_slot_that_is_down_makes_a_partial_cut(tmp_path: Path) -> None:
    """It is named; the others are there."""
    paths = Paths(tmp_path)
    paths.slot("memory").mkdir(parents=True)
    (paths.slot("memory") / "memory.db").write_bytes(b"not a database" * 100)
    async with open_slots(paths.prefix) as slots:
        assert slots.is_down("memory")
        cutter = Cutter(paths, slots)
        cut = await cutter.prepare(uuid7(), "", plan_of_slots())
        await cutter.take(cut)
        staged = await asyncio.to_thread(staged_of, cut, paths)
        await asyncio.to_thread(cut.close)
    assert staged.partial == ("memory",)
    assert {"state/beads/beads.db", "state/pods/index.db"} <= set(staged.stores)
    assert not (paths.backup_staging / cut.id / "state/memory").exists()
