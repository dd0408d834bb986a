"""V9 to V13: the journal as files. Implementations without files skip these."""

import asyncio
import hashlib
import json
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentbox.adapters.events.journal.prune import prune
from agentbox.adapters.events.journal.segments import segment_files
from agentbox.adapters.events.journal.verify import verify
from agentbox.core.slot_errors import CursorExpired, IntegrityError, QuotaExceeded, SlotUnavailable
from agentbox_testkit.contracts.common import expect_error
from agentbox_testkit.contracts.events_common import (
    all_events,
    edit_lines,
    fill,
    new_event,
    three_days,
)


class FileClauses:
    """Segments, seals, verification, capacity."""

    async def test_V09_segments_are_days(self, store: Any, adapter: Any, clock: Any) -> None:
        """A new day starts a new segment; the old one ends with its seal record, is read-only and
        has a seal file.
        """
        directory = await three_days(store, adapter, clock)
        paths = segment_files(directory)
        assert [path.name for path in paths] == [f"2026-01-0{day}.0001.jsonl" for day in (1, 2, 3)]
        for path in paths[:-1]:
            *body, last = [json.loads(line) for line in path.read_bytes().splitlines()]
            assert (last["type"], last["data"]) == (
                "journal.segment.sealed",
                {"first_seq": body[0]["seq"], "count": len(body), "tail_hash": body[-1]["hash"]},
            )
            assert path.stat().st_mode & 0o777 == 0o400
            seal = json.loads(path.with_suffix(".seal.json").read_bytes())
            assert seal["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert {json.loads(line)["ts"][:10] for line in paths[1].read_bytes().splitlines()} == {
            "2026-01-02"
        }

    async def test_V09_segments_are_rolled_at_their_size(self, store: Any, clock: Any) -> None:
        """Several numbered segments of one day; the records continue across them, and reopening
        finds them all.
        """
        adapter = await store.with_options(segment_size=20_000).open()
        events = [(await adapter.append([new_event()]))[0] for _ in range(300)]
        assert len(segment_files(store.directory)) > 3
        assert [e for e in await all_events(adapter) if e.type == "test.thing"] == events
        assert (await adapter.verify()).ok
        adapter = await store.reopen()
        assert [e for e in await all_events(adapter) if e.type == "test.thing"] == events

    async def test_V10_one_writer(self, store: Any, adapter: Any) -> None:
        """A second one is rejected with the holder's pid, in this process and in another; readers
        need no lock.
        """
        await fill(adapter, 3)
        with pytest.raises(SlotUnavailable, match=str(os.getpid())):
            await store.open()
        async with store.worker("append-events", "1") as worker:
            out, _ = await worker.communicate()
        assert (out, worker.returncode) == (b"", 1)
        assert verify(store.directory).ok
        await adapter.append([new_event()])

    async def test_V11_a_sound_journal(self, store: Any, adapter: Any, clock: Any) -> None:
        """First, last and tail are reported; a known anchor passes."""
        directory = await three_days(store, adapter, clock)
        report = verify(directory)
        assert (report.ok, report.first_seq, report.last_seq) == (True, 0, 121)
        assert verify(directory, anchor=(report.last_seq, report.tail_hash)).ok
        assert verify(directory, from_seq=60).last_seq == 121

    @pytest.mark.parametrize("segment", [0, 1, 2])
    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda ls: [*ls[:5], ls[5].replace(b'"n":', b'"m":'), *ls[6:]], id="edit"),
            pytest.param(lambda ls: [*ls[:5], *ls[6:]], id="removal"),
            pytest.param(lambda ls: [*ls[:5], ls[4], *ls[5:]], id="insertion"),
            pytest.param(lambda ls: [*ls[:5], ls[6], ls[5], *ls[7:]], id="reorder"),
            pytest.param(lambda ls: [*ls[:5], b"\n", *ls[5:]], id="empty line"),
            pytest.param(
                lambda ls: [*ls[:5], ls[5].replace(b'"data":{', b'"data": {'), *ls[6:]],
                id="spelling",
            ),
        ],
    )
    async def test_V11_changes_are_found(
        self, store: Any, adapter: Any, clock: Any, segment: int, change: Any
    ) -> None:
        """In any segment, with file and line."""
        directory = await three_days(store, adapter, clock)
        path = segment_files(directory)[segment]
        edit_lines(path, change)
        error = verify(directory).error
        assert error is not None
        assert (error.file, error.line) == (path.name, 6)

    async def test_V11_a_splice_is_found(self, store: Any, adapter: Any, clock: Any) -> None:
        """A valid record of another journal, with the right number."""
        directory = await three_days(store, adapter, clock)
        path = segment_files(directory)[2]
        lines = path.read_bytes().splitlines(keepends=True)
        other = store.sibling("other")
        await fill(await other.open(), 130)
        await other.close_all()
        foreign = next(
            line
            for file in segment_files(other.directory)
            for line in file.read_bytes().splitlines(keepends=True)
            if json.loads(line)["seq"] == json.loads(lines[7])["seq"]
        )
        edit_lines(path, lambda ls: [*ls[:7], foreign, *ls[8:]])
        error = verify(directory).error
        assert error is not None
        assert (error.file, error.line) == (path.name, 8)

    @pytest.mark.parametrize(
        ("name", "wanted"),
        [
            ("2026-01-01.0001.jsonl", "2026-01-01"),
            ("2026-01-02.0001.jsonl", "2026-01-02"),
            ("2026-01-01.0001.seal.json", "2026-01-01"),
            ("2026-01-02.0001.seal.json", "2026-01-02"),
        ],
    )
    async def test_V11_missing_files_are_found(
        self, store: Any, adapter: Any, clock: Any, name: str, wanted: str
    ) -> None:
        """A sealed segment, or its seal."""
        directory = await three_days(store, adapter, clock)
        (directory / name).unlink()
        error = verify(directory).error
        assert error is not None
        assert error.file.startswith(wanted)

    async def test_V11_a_broken_seal_is_found(self, store: Any, adapter: Any, clock: Any) -> None:
        """Another digest, another count."""
        directory = await three_days(store, adapter, clock)
        seal = directory / "2026-01-01.0001.seal.json"
        for before, after in (
            (b'"sha256":"', b'"sha256":"0'),
            (b'"count":41', b'"count":42'),
            (b"{", b"["),
        ):
            original = seal.read_bytes()
            edit_lines(seal, lambda ls, a=after, b=before: [line.replace(b, a) for line in ls])
            assert not verify(directory).ok
            edit_lines(seal, lambda _, kept=original: [kept])
        assert verify(directory).ok

    async def test_V11_a_cut_tail_needs_an_anchor(
        self, store: Any, adapter: Any, clock: Any
    ) -> None:
        """Without an anchor it looks like a shorter journal; with `anchor` it is found."""
        directory = await three_days(store, adapter, clock)
        report = verify(directory)
        edit_lines(segment_files(directory)[-1], lambda ls: ls[:-3])
        assert verify(directory).ok
        assert not verify(directory, anchor=(report.last_seq, report.tail_hash)).ok
        assert not verify(directory, anchor=(3, "0" * 64)).ok

    async def test_V12_reading_below_the_anchor_has_expired(
        self, store: Any, adapter: Any, clock: Any
    ) -> None:
        """After pruning, reading earlier records is CursorExpired with the oldest one."""
        directory = await three_days(store, adapter, clock)
        await self.prune(directory)
        adapter = await store.open()
        assert (await adapter.verify()).first_seq == 41
        error = await expect_error(CursorExpired, adapter.read(since=39))
        assert error.members["oldest"] == 41
        assert (await adapter.read(since=40)).events[0].seq == 41

    async def prune(self, directory: Path) -> None:
        """Remove the first segment as `agentbox events prune` does."""
        await asyncio.to_thread(prune, directory, before_seq=50)

    async def test_V13_a_full_journal_refuses_and_keeps(self, store: Any) -> None:
        """QuotaExceeded at `max_size`, health degraded, everything written is readable; one warning
        at 80 %.
        """
        adapter = await store.with_options(max_size=1_000_000).open()
        events = []
        error = None
        while error is None:
            try:
                events += await adapter.append([new_event(data={"x": "y" * 1000})])
            except QuotaExceeded as refusal:
                error = refusal
        assert error.members["config_path"] == "adapters.events.max_size"
        health = await adapter.health()
        assert (health.state, "appends fail" in health.detail) == ("degraded", True)
        stored = await all_events(adapter)
        assert [event for event in stored if event.type == "test.thing"] == events
        assert [event.type for event in stored if event.type != "test.thing"] == [
            "journal.size.warning"
        ]
        assert (await adapter.verify()).ok

    async def test_V13_a_full_disk_loses_nothing(self, store: Any, adapter: Any) -> None:
        """Simulated by the file-size limit of a child process: the write fails halfway,
        acknowledged records are complete.
        """
        await store.close_all()
        shutil.rmtree(store.directory)
        async with store.worker("append-until-full", "100000") as worker:
            out, _ = await worker.communicate()
        *acknowledged, end = [json.loads(line) for line in out.splitlines()]
        assert end["error"] in ("QuotaExceeded", "BackendError")
        adapter = await store.open()
        stored = {event.seq: event.hash for event in await all_events(adapter)}
        assert {line["seq"]: line["hash"] for line in acknowledged}.items() <= stored.items()
        assert (await adapter.verify()).ok

    async def test_C09_a_journal_of_another_shape_is_refused(
        self, store: Any, adapter: Any
    ) -> None:
        """A record with an unknown member: rejected and left unchanged."""
        await fill(adapter, 3)
        await store.close_all()
        (path,) = segment_files(store.directory)
        edit_lines(
            path, lambda ls: [*ls[:2], ls[2].replace(b'"trace_id"', b'"newer":1,"trace_id"')]
        )
        before = path.read_bytes()
        with pytest.raises(IntegrityError):
            await store.open()
        assert path.read_bytes() == before

    async def test_V02_time_does_not_decrease_over_a_reopen(
        self, store: Any, adapter: Any, clock: Any
    ) -> None:
        """The next record's time is not before the last one's."""
        (first,) = await adapter.append([new_event()])
        clock.set_wall(first.ts - timedelta(days=2))
        adapter = await store.reopen()
        (second,) = await adapter.append([new_event()])
        assert second.ts == first.ts
