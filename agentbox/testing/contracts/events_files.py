"""V8 to V11 and V13: the journal as files. An implementation without files of its own does not take these."""

import asyncio
import hashlib
import json
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentbox.adapters.errors import CursorExpired, IntegrityError, QuotaExceeded, SlotUnavailable
from agentbox.adapters.events.prune import prune
from agentbox.adapters.events.segments import segment_files
from agentbox.adapters.events.verify import verify
from agentbox.testing.contracts.common import refused
from agentbox.testing.contracts.events_common import everything, fill, new


async def three_days(store: Any, adapter: Any, clock: Any, count: int = 40) -> Path:
    """Two sealed segments and one that is open; returns the closed journal's folder."""
    for _ in range(3):
        await fill(adapter, count)
        clock.advance(86400)
    await store.close_all()
    directory: Path = store.directory
    return directory


def edit(path: Path, change: Any) -> None:
    """Rewrites a file by its lines."""
    mode = path.stat().st_mode
    path.chmod(0o600)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    path.chmod(mode)


class FileClauses:
    """Segments, seals, recovery, verification."""

    async def test_V08_a_torn_tail_is_cut_kept_and_told(self, store: Any, adapter: Any) -> None:
        """The journal goes on after the last whole record; the rest is in `<segment>.torn`."""
        events = await fill(adapter, 5)
        await store.close_all()
        (path,) = segment_files(store.directory)
        torn = path.read_bytes().splitlines()[-1][:100]
        with path.open("ab") as stream:
            stream.write(torn)
        adapter = await store.open()
        *before, told = await everything(adapter)
        assert before == events
        assert (told.type, told.data) == (
            "journal.recovered",
            {"segment": path.name, "bytes": 100, "sha256": hashlib.sha256(torn).hexdigest()},
        )
        assert path.with_suffix(".torn").read_bytes() == torn
        assert (await adapter.verify()).ok

    @pytest.mark.parametrize("line", [0, 700, 1500])
    async def test_V08_damage_elsewhere_is_refused_and_left_alone(self, store: Any, adapter: Any, line: int) -> None:
        """Open raises IntegrityError with the place, and no byte of any file changes."""
        await fill(adapter, 1600)
        await store.close_all()
        (path,) = segment_files(store.directory)
        edit(path, lambda lines: [*lines[:line], lines[line].replace(b'"n":', b'"m":'), *lines[line + 1 :]])
        files = {item: item.read_bytes() for item in store.directory.iterdir() if item.name != ".lock"}
        with pytest.raises(IntegrityError) as caught:
            await store.open()
        assert (caught.value.members["segment"], caught.value.members["line"]) == (path.name, line + 1)
        await store.close_all()
        assert {item: item.read_bytes() for item in store.directory.iterdir() if item.name != ".lock"} == files

    async def test_V08_the_index_can_be_derived(self, store: Any, adapter: Any) -> None:
        """Without it, with a wrong one, with a torn one: the same records, and the same index in the end."""
        events = await fill(adapter, 2500)
        await store.close_all()
        index = segment_files(store.directory)[0].with_suffix(".idx")
        right = index.read_bytes()
        assert right.count(b"\n") == 3
        for wrong in (None, b"", right[:-7], right.replace(b'"offset":', b'"offset":1'), b"nonsense\n"):
            index.unlink()
            if wrong is not None:
                index.write_bytes(wrong)
            adapter = await store.open()
            assert await everything(adapter) == events
            await store.close_all()
            assert index.read_bytes() == right

    async def test_V09_segments_are_days(self, store: Any, adapter: Any, clock: Any) -> None:
        """A new day begins a new segment; the old one ends with its seal record, is read-only and has a seal file."""
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
        assert {json.loads(line)["ts"][:10] for line in paths[1].read_bytes().splitlines()} == {"2026-01-02"}

    async def test_V09_segments_are_rolled_at_their_size(self, store: Any, clock: Any) -> None:
        """Several of one day, numbered; the records go on across them, and reopening finds them all."""
        adapter = await store.with_options(segment_size=20_000).open()
        events = [(await adapter.append([new()]))[0] for _ in range(300)]
        assert len(segment_files(store.directory)) > 3
        assert [e for e in await everything(adapter) if e.type == "test.thing"] == events
        assert (await adapter.verify()).ok
        adapter = await store.reopen()
        assert [e for e in await everything(adapter) if e.type == "test.thing"] == events

    async def test_V09_a_crash_between_the_seal_record_and_its_file_is_finished(
        self, store: Any, adapter: Any, clock: Any
    ) -> None:
        """Open writes the seal that is missing for the last segment."""
        directory = await three_days(store, adapter, clock)
        last, full = segment_files(directory)[-1], segment_files(directory)[-2]
        last.unlink()
        last.with_suffix(".idx").unlink(missing_ok=True)
        full.with_suffix(".seal.json").unlink()
        full.chmod(0o600)
        adapter = await store.open()
        assert full.with_suffix(".seal.json").exists()
        await adapter.append([new()])
        assert (await adapter.verify()).ok

    async def test_V10_one_writer(self, store: Any, adapter: Any) -> None:
        """A second one is refused with the holder's pid, in this process and in another; readers need no lock."""
        await fill(adapter, 3)
        with pytest.raises(SlotUnavailable, match=str(os.getpid())):
            await store.open()
        async with store.worker("append-events", "1") as worker:
            out, _ = await worker.communicate()
        assert (out, worker.returncode) == (b"", 1)
        assert verify(store.directory).ok
        await adapter.append([new()])

    async def test_V11_a_sound_journal(self, store: Any, adapter: Any, clock: Any) -> None:
        """First, last and tail are told; a known anchor passes."""
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
            pytest.param(lambda ls: [*ls[:5], ls[5].replace(b'"data":{', b'"data": {'), *ls[6:]], id="spelling"),
        ],
    )
    async def test_V11_changes_are_found(self, store: Any, adapter: Any, clock: Any, segment: int, change: Any) -> None:
        """In any segment, with file and line."""
        directory = await three_days(store, adapter, clock)
        path = segment_files(directory)[segment]
        edit(path, change)
        error = verify(directory).error
        assert error is not None
        assert (error.file, error.line) == (path.name, 6)

    async def test_V11_a_splice_is_found(self, store: Any, adapter: Any, clock: Any) -> None:
        """A sound record of another journal, with the right number."""
        directory = await three_days(store, adapter, clock)
        path = segment_files(directory)[2]
        lines = path.read_bytes().splitlines(keepends=True)
        other = store.beside("other")
        await fill(await other.open(), 130)
        await other.close_all()
        foreign = next(
            line
            for file in segment_files(other.directory)
            for line in file.read_bytes().splitlines(keepends=True)
            if json.loads(line)["seq"] == json.loads(lines[7])["seq"]
        )
        edit(path, lambda ls: [*ls[:7], foreign, *ls[8:]])
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
        for before, after in ((b'"sha256":"', b'"sha256":"0'), (b'"count":41', b'"count":42'), (b"{", b"[")):
            kept = seal.read_bytes()
            edit(seal, lambda ls, a=after, b=before: [line.replace(b, a) for line in ls])
            assert not verify(directory).ok
            edit(seal, lambda _, kept=kept: [kept])
        assert verify(directory).ok

    async def test_V11_a_cut_tail_needs_an_anchor(self, store: Any, adapter: Any, clock: Any) -> None:
        """Alone it looks like a shorter journal; with `anchor` it is found."""
        directory = await three_days(store, adapter, clock)
        whole = verify(directory)
        edit(segment_files(directory)[-1], lambda ls: ls[:-3])
        assert verify(directory).ok
        assert not verify(directory, anchor=(whole.last_seq, whole.tail_hash)).ok
        assert not verify(directory, anchor=(3, "0" * 64)).ok

    async def test_V12_reading_below_the_anchor_has_expired(self, store: Any, adapter: Any, clock: Any) -> None:
        """Once a pruned journal says where it begins, what came before is CursorExpired with the oldest kept."""
        directory = await three_days(store, adapter, clock)
        await self.prune(directory)
        adapter = await store.open()
        assert (await adapter.verify()).first_seq == 41
        error = await refused(CursorExpired, adapter.read(since=39))
        assert error.members["oldest"] == 41
        assert (await adapter.read(since=40)).events[0].seq == 41

    async def prune(self, directory: Path) -> None:
        """Removes the first segment as `agentbox events prune` does."""
        await asyncio.to_thread(prune, directory, before_seq=50)

    async def test_V13_a_full_journal_refuses_and_keeps(self, store: Any) -> None:
        """QuotaExceeded at `max_size`, health down, all that was written is there; one warning at 80 %."""
        adapter = await store.with_options(max_size=1_000_000).open()
        events = []
        error = None
        while error is None:
            try:
                events += await adapter.append([new(data={"x": "y" * 1000})])
            except QuotaExceeded as refusal:
                error = refusal
        assert error.members["config_path"] == "adapters.events.max_size"
        assert (await adapter.health()).state == "down"
        found = await everything(adapter)
        assert [event for event in found if event.type == "test.thing"] == events
        assert [event.type for event in found if event.type != "test.thing"] == ["journal.size.warning"]
        assert (await adapter.verify()).ok

    async def test_V13_a_full_disk_loses_nothing(self, store: Any, adapter: Any) -> None:
        """Held by the file-size limit of a child process: the write fails half way, and what was told is whole."""
        await store.close_all()
        shutil.rmtree(store.directory)
        async with store.worker("append-until-full", "100000") as worker:
            out, _ = await worker.communicate()
        *told, end = [json.loads(line) for line in out.splitlines()]
        assert end["error"] in ("QuotaExceeded", "BackendError")
        adapter = await store.open()
        found = {event.seq: event.hash for event in await everything(adapter)}
        assert {line["seq"]: line["hash"] for line in told}.items() <= found.items()
        assert (await adapter.verify()).ok

    async def test_C09_a_journal_of_another_shape_is_refused(self, store: Any, adapter: Any) -> None:
        """A record with a member that this version does not know: refused, and left as it is."""
        await fill(adapter, 3)
        await store.close_all()
        (path,) = segment_files(store.directory)
        edit(path, lambda ls: [*ls[:2], ls[2].replace(b'"trace_id"', b'"newer":1,"trace_id"')])
        before = path.read_bytes()
        with pytest.raises(IntegrityError):
            await store.open()
        assert path.read_bytes() == before

    async def test_V02_time_does_not_decrease_over_a_reopen(self, store: Any, adapter: Any, clock: Any) -> None:
        """The last record's time is where the next begins."""
        (first,) = await adapter.append([new()])
        clock.set_wall(first.ts - timedelta(days=2))
        adapter = await store.reopen()
        (second,) = await adapter.append([new()])
        assert second.ts == first.ts
