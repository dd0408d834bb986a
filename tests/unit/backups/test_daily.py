"""The work of a day: each snapshot in its turn, damage that is named, a journal that is pruned once
two verified snapshots have it, and what is restored of such a box.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from support import tables
from support.cut_slots import open_slots, plan_of_slots
from support.staged_snapshots import filled, identity

from agentbox.adapters.events.journal.verify import verify
from agentbox.adapters.events.local_jsonl import LocalJsonlEvents
from agentbox.adapters.runtime.adapter import SystemClock
from agentbox.adapters.runtime.slots import Slots
from agentbox.api.backups.daily import is_due
from agentbox.api.backups.journal_pruning import prune_journal
from agentbox.api.backups.maker import BackupMaker
from agentbox.api.backups.setup import make_backups
from agentbox.api.backups.verification import REPOSITORY, SnapshotVerifier
from agentbox.api.plan_source import PlanSource
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.contracts.backups import Snapshot
from agentbox.contracts.events import Event, NewEvent
from agentbox.core import clock
from agentbox.core.paths import Paths
from agentbox.restoring.restore import RestoreOptions, make_state

BY = "urn:test"
DAYS = 30


class SetClock(SystemClock):
    """A clock that stands still until it is moved."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at


@dataclass
class Box:
    """Open slots, and what makes and verifies snapshots of them."""

    slots: Slots
    clock: SetClock
    maker: BackupMaker
    verifier: SnapshotVerifier
    metrics: CollectorRegistry

    async def events(self, type: str) -> list[dict[str, object]]:
        found = await self.all_events()
        return [dict(event.data) for event in found if event.type == type]

    async def all_events(self) -> tuple[Event, ...]:
        """From the oldest that is kept on."""
        journal = self.slots.serving("events")
        assert isinstance(journal, LocalJsonlEvents)
        before = journal.seq_before_first()
        return (await self.slots.events.read(since=before, limit=1000)).events

    async def back_up(self) -> str:
        """The id of a snapshot that was made and verified."""
        made = await self.maker.create("", BY)
        await self.maker.wait()
        assert self.maker.current is not None
        assert self.maker.current.state == "created", self.maker.current
        return made.id


@asynccontextmanager
async def opened(prefix: Path, at: datetime | None = None) -> AsyncIterator[Box]:
    """A box whose snapshots are not encrypted."""
    paths, set_clock = Paths(prefix), SetClock(at or clock.now())
    paths.state.mkdir(parents=True, exist_ok=True)
    table = tables.backup(encrypt="none", min_free=1 << 20)
    plans = PlanSource(replace(plan_of_slots(), backup=table))
    async with open_slots(prefix, set_clock) as slots:
        metrics = CollectorRegistry()
        made = make_backups(paths, plans, slots, metrics, None)
        yield Box(slots, set_clock, made.maker, made.verifier, metrics)


def repository_of(prefix: Path, count: int) -> ArchiveRepository:
    """Equally large snapshots s1, s2, ... that the box has not read yet."""
    _key, recipient = identity()
    folder = Paths(prefix).backups
    folder.parent.mkdir(parents=True, exist_ok=True)
    assert folder.name == "backups"
    return filled(folder.parent, recipient, count)


async def read_in(box: Box, percent: int, days: int) -> list[list[str]]:
    """The ids that each day verified."""
    found, before = [], len(await box.events("backup.verified"))
    for _ in range(days):
        await box.verifier.verify_share(percent, BY)
        ids = [str(row["id"]) for row in await box.events("backup.verified")]
        found.append(ids[before:])
        before = len(ids)
    return found


async def test_each_snapshot_has_its_turn(tmp_path: Path) -> None:
    """A share that is smaller than a snapshot, as large, and larger: in 100/percent days everything is
    read once, in turn, and not more than one snapshot beyond it."""
    repository_of(tmp_path, 4)
    async with opened(tmp_path) as box:
        ids: list[str] = []
        for percent, largest_day in ((10, 1), (25, 2), (50, 3)):
            days = await read_in(box, percent, 200 // percent)
            assert 7 <= sum(len(each) for each in days) <= 9, (percent, days)
            assert max(len(each) for each in days) <= largest_day, (percent, days)
            ids += [id for each in days for id in each]
        assert ids == [f"s{number % 4 + 1}" for number in range(len(ids))]
        assert await read_in(box, 0, 3) == [[], [], []]
        assert not is_due(box.verifier.record, clock.now())
        assert is_due(box.verifier.record, clock.now() + timedelta(days=1))
        assert is_due(box.verifier.record, clock.now() - timedelta(days=1))


async def test_damage_is_named_until_it_is_repaired(tmp_path: Path) -> None:
    """In the record, which a restart reads, the journal and the metric; of an archive, and of heads.
    The other snapshots still have their turn."""
    repository = repository_of(tmp_path, 3)
    archive = repository.folder / repository.get("s2").archive
    sound, head = archive.read_bytes(), repository.folder / "s3.json"
    head_text = head.read_bytes()
    archive.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    async with opened(tmp_path) as box:
        await box.verifier.verify_share(100, BY)
        rows = {row["id"]: row for row in await box.events("backup.verified")}
        assert {id: row["ok"] for id, row in rows.items()} == {"s1": True, "s2": False, "s3": True}
        assert rows["s2"]["faults"] == [f"{archive.name}: differs from its hash in the head"]
        assert box.metrics.get_sample_value("agentbox_backup_damaged_snapshots") == 1
        assert box.verifier.record.verified_at("s2") is None
        head.write_bytes(b"{}")
        await box.verifier.verify_share(1, BY)
        assert "s3.json" in box.verifier.record.faults(REPOSITORY)[0]
    async with opened(tmp_path) as box:
        assert box.metrics.get_sample_value("agentbox_backup_damaged_snapshots") == 2
        archive.write_bytes(sound)
        head.write_bytes(head_text)
        await box.verifier.verify_share(100, BY)
        assert box.metrics.get_sample_value("agentbox_backup_damaged_snapshots") == 0
        assert box.verifier.record.faults(REPOSITORY) == ()


async def test_a_snapshot_that_is_pruned_meanwhile_is_not_damaged(tmp_path: Path) -> None:
    """Its archive was removed while its head was read."""
    repository = repository_of(tmp_path, 2)
    async with opened(tmp_path) as box:
        assert await box.verifier.verify("s1", BY) == ()
        repository.remove("s1")
        await box.verifier.verify_share(100, BY)
        assert [row["id"] for row in await box.events("backup.verified")] == ["s1", "s2"]


async def test_a_snapshot_that_is_made_meanwhile_stays_verified(tmp_path: Path) -> None:
    """What is forgotten at the end of the day's work is what was gone at its beginning."""
    async with opened(tmp_path) as box:
        first, second = await box.back_up(), await box.back_up()
        ArchiveRepository(Paths(tmp_path).backups, None).remove(first)
        made: list[str] = []

        async def list_and_back_up() -> Sequence[Snapshot]:
            heads = await SnapshotVerifier.heads(box.verifier)
            made.append(await box.back_up())
            return heads

        box.verifier.heads = list_and_back_up  # type: ignore[method-assign]
        await box.verifier.verify_share(1, BY)
        record = box.verifier.record
        assert [record.verified_at(id) is not None for id in (first, second, *made)] == [
            False, True, True,
        ]  # fmt: skip


async def journal_of_days(box: Box, days: int) -> None:
    """A segment of each of the last days, the newest of today; all but that are sealed."""
    for ago in range(days, -1, -1):
        box.clock.at = days_ago(ago)
        await box.slots.events.append([NewEvent(type="test.day", data={"ago": ago})])


def days_ago(days: int) -> datetime:
    return clock.now() - timedelta(days=days)


def days_of(prefix: Path) -> list[str]:
    return sorted(path.name[:10] for path in Paths(prefix).slot("events").glob("*.jsonl"))


def day(ago: int) -> str:
    return days_ago(ago).date().isoformat()


async def test_two_verified_snapshots_let_old_segments_go(tmp_path: Path) -> None:
    """Not one of them, not a damaged one, not what is young; the journal begins at an anchor, verifies
    and goes on, and the newest snapshot of it restores."""
    async with opened(tmp_path, days_ago(DAYS)) as box:
        await journal_of_days(box, DAYS)
        whole = days_of(tmp_path)
        assert len(whole) == DAYS + 1
        first = await box.back_up()
        await prune_journal(box.slots, box.verifier, 7, BY)
        assert days_of(tmp_path) == whole
        second = await box.back_up()
        box.verifier.record.verified(first, ["a: is damaged"])
        await prune_journal(box.slots, box.verifier, 7, BY)
        assert days_of(tmp_path) == whole
        assert await box.verifier.verify(first, BY) == ()
        await prune_journal(box.slots, box.verifier, 7, BY)
        assert days_of(tmp_path) == [name for name in whole if name >= day(7)]
        kept = await box.all_events()
        assert kept[0].ts.date().isoformat() == day(7)
        (row,) = await box.events("journal.pruned")
        assert (row["by"], row["first_seq"]) == (BY, kept[0].seq)
        assert (await box.slots.events.verify()).error is None
        third = await box.back_up()
        repository = ArchiveRepository(Paths(tmp_path).backups, None)
        assert [head.id for head in repository.list()] == [first, second, third]
    assert verify(Paths(tmp_path).slot("events")).error is None
    restored = Paths(tmp_path / "restored")
    with repository.open(third, []) as members:
        options = RestoreOptions(
            snapshot=third, box="", members=repository.get(third).members, new_identity=True
        )
        await asyncio.to_thread(make_state, restored, members, options)
    report = verify(restored.slot("events"))
    assert (report.error, report.first_seq) == (None, kept[0].seq)


async def test_segments_of_another_journal_are_not_a_copy(tmp_path: Path) -> None:
    """Two snapshots of a journal with the same names and numbers, but with other records, as after a
    restore: nothing is removed. Nor while somebody reads all files."""
    async with opened(tmp_path / "other", days_ago(9)) as box:
        await journal_of_days(box, 9)
        await box.back_up()
        await box.back_up()
    Paths(tmp_path / "own").backups.parent.mkdir(parents=True)
    Paths(tmp_path / "other").backups.rename(Paths(tmp_path / "own").backups)
    async with opened(tmp_path / "own", days_ago(9)) as box:
        await journal_of_days(box, 9)
        await box.verifier.verify_share(100, BY)
        assert len(await box.events("backup.verified")) == 2
        await prune_journal(box.slots, box.verifier, 1, BY)
        assert len(days_of(tmp_path / "own")) == 10


async def test_a_reader_of_all_files_delays_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a backup: nothing is removed until the last of them has ended."""
    monkeypatch.setattr("agentbox.api.backups.journal_pruning._PAUSE_SECONDS", 0.0)
    async with opened(tmp_path, days_ago(3)) as box:
        await journal_of_days(box, 3)
        await box.back_up()
        await box.back_up()
        cut = box.slots.serving("events").cut(dump=False)
        assert cut is not None
        cut.prepare()
        await prune_journal(box.slots, box.verifier, 1, BY)
        assert len(days_of(tmp_path)) == 4
        cut.close()
        await prune_journal(box.slots, box.verifier, 1, BY)
        assert len(days_of(tmp_path)) == 2
