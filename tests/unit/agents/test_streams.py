"""Output on disk."""

import json
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbox.agents.streams.reader import ItemReader
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import StreamItem
from agentbox.core.slot_errors import CursorExpired

LIMIT = 64 << 10


def read(log: StreamLog, since: int = 0) -> list[StreamItem]:
    reader, found = ItemReader(log, since), []
    while batch := reader.batch(1000):
        found += batch
    return found


def fill(log: StreamLog, size: int, kind: str = "stdout") -> None:
    for number in range(size // 1000):
        log.append("stdout" if kind == "stdout" else "stderr", 1, bytes([number % 256]) * 1000)


def test_kinds_come_back_in_one_order(tmp_path: Path) -> None:
    """Items of all kinds are read by cursor, with their data, generation and kind."""
    log = StreamLog(tmp_path, LIMIT)
    log.append("stdout", 1, b"a")
    log.append("stderr", 1, b"b")
    log.append_json("state", 2, {"state": "running"})
    log.append("stdout", 2, b"c")
    assert [(one.cursor, one.kind, one.generation, one.data) for one in read(log)] == [
        (1, "stdout", 1, b"a"), (2, "stderr", 1, b"b"), (3, "state", 2, b'{"state":"running"}'), (4, "stdout", 2, b"c"),
    ]  # fmt: skip


def test_the_oldest_is_dropped_and_counted(tmp_path: Path) -> None:
    """The stored output and the reported gaps together are all that was written; files stay within
    the limit."""
    log = StreamLog(tmp_path, LIMIT)
    log.append("stderr", 1, b"first")
    fill(log, 500_000)
    found = read(log)
    cut = json.loads(found[1].data)
    kept = sum(len(one.data) for one in found if one.kind == "stdout")
    assert found[0].data == b"first"
    assert (cut["state"], cut["stream"]) == ("truncated", "stdout")
    assert cut["dropped_bytes"] + kept == 500_000
    assert LIMIT // 2 < kept <= LIMIT
    assert sum(path.stat().st_size for path in tmp_path.glob("stdout.*")) <= LIMIT


@pytest.mark.limit("events_kept")
def test_events_of_a_life_are_kept_by_number(tmp_path: Path) -> None:
    """The newest of them, exact to an eighth; the gap counts the rest, after a restart too. Output
    of the same agent and events of others are complete."""
    log, beside = StreamLog(tmp_path / "one", LIMIT, 64), StreamLog(tmp_path / "two", LIMIT, 64)
    log.append("stdout", 1, b"first")
    beside.append_json("state", 1, {"state": "running"})
    for number in range(1000):
        log.append_json("state", 1, {"number": number})
    for one in (log, StreamLog.recover(tmp_path / "one", LIMIT, 64)):
        found = read(one)
        cut, *kept = [json.loads(item.data) for item in found if item.kind == "state"]
        assert 56 <= len(kept) <= 64
        assert (cut["state"], cut["stream"], cut["dropped_items"]) == (
            "truncated",
            "state",
            1000 - len(kept),
        )
        assert [row["number"] for row in kept] == list(range(1000 - len(kept), 1000))
        assert [item.data for item in found if item.kind == "stdout"] == [b"first"]
    assert [json.loads(item.data) for item in read(beside)] == [{"state": "running"}]


def test_a_trimmed_cursor_has_expired(tmp_path: Path) -> None:
    """Not before 0 and not from the oldest on; in between, CursorExpired has the position to resume
    at."""
    log = StreamLog(tmp_path, LIMIT)
    fill(log, 500_000)
    with pytest.raises(CursorExpired) as caught:
        ItemReader(log, 1)
    oldest = caught.value.members["oldest"]
    assert [one.cursor for one in read(log, oldest)] == list(range(oldest + 1, log.last + 1))


def test_a_reader_that_is_overtaken_meets_the_cut(tmp_path: Path) -> None:
    """It continues with the stored output, in order, after one item that reports what is missing."""
    log = StreamLog(tmp_path, LIMIT)
    fill(log, 10_000)
    reader = ItemReader(log)
    first = reader.batch(2000)
    fill(log, 500_000)
    rest = []
    while batch := reader.batch(5000):
        rest += batch
    cursors = [one.cursor for one in (*first, *rest)]
    assert cursors == sorted(set(cursors))
    assert [one.kind for one in rest].count("state") == 1
    assert rest[-1].cursor == log.last


def test_a_torn_item_is_cut_off(tmp_path: Path) -> None:
    """After a crash in a write the complete items are there, and the next one gets the next cursor."""
    log = StreamLog(tmp_path, LIMIT)
    log.append("stdout", 1, b"whole")
    log.append("stdout", 1, b"torn")
    log.close()
    path = next(tmp_path.glob("stdout.*"))
    path.write_bytes(path.read_bytes()[:-2])
    again = StreamLog.recover(tmp_path, LIMIT)
    assert [one.data for one in read(again)] == [b"whole"]
    assert again.append("stdout", 1, b"next") == 2
    assert [one.data for one in read(again)] == [b"whole", b"next"]


def test_recovery_changes_nothing(tmp_path: Path) -> None:
    """Items, cut and expired cursors are the same after a restart."""
    log = StreamLog(tmp_path, LIMIT)
    fill(log, 300_000)
    fill(log, 300_000, "stderr")
    log.append_json("exit", 1, {"code": 0})
    before = read(log)
    log.close()
    again = StreamLog.recover(tmp_path, LIMIT)
    assert read(again) == before
    with pytest.raises(CursorExpired):
        ItemReader(again, 1)


def test_an_item_larger_than_a_read_is_whole(tmp_path: Path) -> None:
    """A chunk of any size is returned unchanged."""
    log = StreamLog(tmp_path, 4 << 20)
    log.append("stdout", 1, b"x" * 300_000)
    log.append("stdout", 1, b"y")
    assert [len(one.data) for one in read(log)] == [300_000, 1]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["stdout", "stderr", "state"]), st.binary(max_size=3000)),
        max_size=80,
    ),
    st.data(),
)
def test_any_mix_is_read_without_gap_or_repeat(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, bytes]], data: st.DataObject
) -> None:
    """From any cursor that has not expired exactly the items after it are returned, wherever a
    restart fell between writes."""
    folder = tmp_path_factory.mktemp("stream")
    log = StreamLog(folder, 8192)
    for kind, item in written:
        if data.draw(st.integers(0, 9)) == 0:
            log.close()
            log = StreamLog.recover(folder, 8192)
        log.append(kind, 1, item)  # type: ignore[arg-type]
    everything = [one for one in read(log) if b"truncated" not in one.data or one.kind != "state"]
    for one in everything:
        assert written[one.cursor - 1] == (one.kind, one.data)
    since = data.draw(st.integers(0, len(written)))
    floor = max(kind.floor.cursor for kind in log.kinds.values())
    if since == 0 or since >= floor:
        wanted = [one for one in everything if one.cursor > since]
        assert [one for one in read(log, since) if one in everything] == wanted


def test_a_full_disk_takes_an_item_whole_or_not(tmp_path: Path) -> None:
    """An append that fails leaves no trace; with space again the next one works, in order."""
    log = StreamLog(tmp_path, LIMIT)
    log.append("stdout", 1, b"before")
    bounds = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, bounds[1]))
    try:
        with pytest.raises(OSError):
            log.append("stdout", 1, b"x" * 1000)  # a part of it fits
        with pytest.raises(OSError):
            log.append("stdout", 1, b"x" * 7000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, bounds[1]))
        with pytest.raises(OSError):
            log.append("stderr", 1, b"no segment can begin")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, bounds)
        signal.signal(signal.SIGXFSZ, handler)
    assert log.append("stderr", 1, b"after") == 2
    assert [one.data for one in read(log)] == [b"before", b"after"]
    log.close()
    assert [one.data for one in read(StreamLog.recover(tmp_path, LIMIT))] == [b"before", b"after"]


def test_a_file_that_was_changed_is_an_error(tmp_path: Path) -> None:
    """Not an endless search, and not another record's bytes."""
    log = StreamLog(tmp_path, LIMIT)
    log.append("stdout", 1, b"x" * 100)
    path = next(tmp_path.glob("stdout.*"))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(OSError, match="is corrupt"):
        read(log)


async def test_a_closed_log_wakes_its_readers(tmp_path: Path) -> None:
    """`more` returns when the log is closed; `finished` then reports it."""
    log = StreamLog(tmp_path, LIMIT)
    reader = ItemReader(log)
    log.append("stdout", 1, b"x")
    assert len(reader.batch(100)) == 1
    assert not reader.finished
    log.close()
    await reader.wait_for_items()
    assert reader.finished
