"""V8 and crash recovery for V9: opening a journal that was not closed."""

import hashlib
import os
from typing import Any

import pytest

from agentbox.adapters.events.journal.segments import segment_files
from agentbox.core.slot_errors import IntegrityError
from agentbox_testkit.contracts.events_common import (
    all_events,
    edit_lines,
    fill,
    new_event,
    three_days,
)


class RecoveryClauses:
    """Torn tails, damage, indexes, seals."""

    @pytest.mark.parametrize("length", [1, 100, -1])
    async def test_V08_a_torn_tail_is_cut_kept_and_told(
        self, store: Any, adapter: Any, length: int
    ) -> None:
        """The journal continues after the last complete record; the rest is in `<segment>.torn`,
        also if only the newline is missing.
        """
        events = await fill(adapter, 5)
        await store.close_all()
        (path,) = segment_files(store.directory)
        torn = path.read_bytes().splitlines(keepends=True)[-1][:length]
        with path.open("ab") as stream:
            stream.write(torn)
        adapter = await store.open()
        *before, recovered = await all_events(adapter)
        assert before == events
        assert (recovered.type, recovered.data) == (
            "journal.recovered",
            {"segment": path.name, "bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()},
        )
        assert path.with_suffix(".torn").read_bytes() == torn
        assert (await adapter.verify()).ok

    async def test_V08_a_segment_may_begin_torn(self, store: Any, adapter: Any, clock: Any) -> None:
        """Its first record was never acknowledged: the journal continues after the previous
        segment.
        """
        directory = await three_days(store, adapter, clock)
        newest = segment_files(directory)[-1]
        os.truncate(newest, 60)
        newest.with_suffix(".idx").unlink()
        store.accept_loss()  # a crash before the first acknowledged record leaves no trace of it
        adapter = await store.open()
        (recovered,) = (await adapter.read(since=81)).events
        assert (recovered.seq, recovered.type, recovered.data["bytes"]) == (
            82,
            "journal.recovered",
            60,
        )
        assert (await adapter.verify()).ok

    @pytest.mark.parametrize("line", [0, 700, 1500])
    async def test_V08_damage_elsewhere_is_refused_and_left_alone(
        self, store: Any, adapter: Any, line: int
    ) -> None:
        """Open raises IntegrityError with the location, and no file changes."""
        await fill(adapter, 1600)
        await store.close_all()
        (path,) = segment_files(store.directory)
        edit_lines(
            path,
            lambda lines: [
                *lines[:line],
                lines[line].replace(b'"n":', b'"m":'),
                *lines[line + 1 :],
            ],
        )
        files = {
            item: item.read_bytes() for item in store.directory.iterdir() if item.name != ".lock"
        }
        with pytest.raises(IntegrityError) as caught:
            await store.open()
        assert (caught.value.members["segment"], caught.value.members["line"]) == (
            path.name,
            line + 1,
        )
        await store.close_all()
        assert {
            item: item.read_bytes() for item in store.directory.iterdir() if item.name != ".lock"
        } == files

    async def test_V08_the_index_can_be_derived(self, store: Any, adapter: Any) -> None:
        """Without an index, with a wrong one, with a torn one: the same records, and the same index
        afterwards.
        """
        events = await fill(adapter, 2500)
        await store.close_all()
        index = segment_files(store.directory)[0].with_suffix(".idx")
        expected = index.read_bytes()
        assert expected.count(b"\n") == 3
        for content in (
            None,
            b"",
            expected[:-7],
            expected.replace(b'"offset":', b'"offset":1'),
            b"nonsense\n",
        ):
            index.unlink()
            if content is not None:
                index.write_bytes(content)
            adapter = await store.open()
            assert await all_events(adapter) == events
            await store.close_all()
            assert index.read_bytes() == expected

    async def test_V09_a_crash_between_the_seal_record_and_its_file_is_finished(
        self, store: Any, adapter: Any, clock: Any
    ) -> None:
        """Open writes the missing seal of the last segment."""
        directory = await three_days(store, adapter, clock)
        last, full = segment_files(directory)[-1], segment_files(directory)[-2]
        last.unlink()
        last.with_suffix(".idx").unlink(missing_ok=True)
        full.with_suffix(".seal.json").unlink()
        full.chmod(0o600)
        store.accept_loss()  # nothing of the segment after it was acknowledged
        adapter = await store.open()
        assert full.with_suffix(".seal.json").exists()
        await adapter.append([new_event()])
        assert (await adapter.verify()).ok
