"""A local store that is missing, empty, truncated or another one is reported when it is opened, and
no new one is created over it."""

import shutil

import apsw
import pytest
from agentbox_testkit.contracts.beads_common import spec
from agentbox_testkit.contracts.events_common import all_events, fill
from agentbox_testkit.local_store import LocalStore

from agentbox.core.slot_errors import IntegrityError

OF = {"beads": "local-sqlite", "memory": "local-sqlite", "pods": "local-fs"}
FILE = {"beads": "beads.db", "memory": "memory.db", "pods": "index.db"}


async def fill_slot(slot, adapter):
    """Something that an operator would miss."""
    if slot == "beads":
        await adapter.create_epic(spec("kept"))
    elif slot == "memory":
        await adapter.store("kept", {"a": 1})
    else:
        await adapter.write("a/kept", b"kept")


async def kept(slot, adapter):
    if slot == "beads":
        return [bead.title for bead in (await adapter.list()).items]
    if slot == "memory":
        return [entry.key for entry in (await adapter.list()).items]
    return [meta.path for meta in (await adapter.list("a/")).items]


@pytest.fixture(params=list(OF))
def slot(request):
    return request.param


@pytest.fixture
async def stored(tmp_path, slot):
    """A store that had data and was closed."""
    made = LocalStore(slot, OF[slot], tmp_path / "box")
    await fill_slot(slot, await made.open())
    await made.close_all()
    yield made
    await made.close_all()


def remove(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def another(path):
    path.unlink()
    apsw.Connection(str(path)).execute("CREATE TABLE t (n)").connection.close()


@pytest.mark.parametrize("ruin", [remove, empty, another])
async def test_a_database_that_vanished_is_refused(stored, slot, ruin, tmp_path):
    """By name, and no new store is created; the previous one is accepted again, and a loss that the
    operator accepts starts an empty one."""
    path = stored.directory / FILE[slot]
    shutil.copytree(stored.directory, tmp_path / "copy")
    ruin(path)
    before = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(
            IntegrityError, match=rf"{FILE[slot]}: it is .*remove stores/{slot}\.json"
        ):
            await stored.open()
    assert (path.read_bytes() if path.exists() else None) == before
    shutil.copy(tmp_path / "copy" / FILE[slot], path)
    assert await kept(slot, await stored.open()) != []
    await stored.close_all()
    ruin(path)
    stored.accept_loss()
    adapter = await stored.open()
    await fill_slot(slot, adapter)
    assert len(await kept(slot, adapter)) == 1


async def test_an_older_copy_is_told(stored, slot, tmp_path):
    """What was written after the copy was made is missing."""
    path = stored.directory / FILE[slot]
    shutil.copy(path, tmp_path / "older")
    await stored.reopen()
    await stored.close_all()
    shutil.copy(tmp_path / "older", path)
    with pytest.raises(IntegrityError, match="lacks the latest writes"):
        await stored.open()


async def test_a_closed_store_is_one_file(stored, slot):
    """Its write-ahead log is empty or missing, so that a copy of the database alone is complete."""
    wal = stored.directory / f"{FILE[slot]}-wal"
    assert not wal.exists() or wal.stat().st_size == 0


async def test_objects_that_vanished_are_refused(tmp_path):
    """Files may be removed by hand (P12), but not all of them at once without an error."""
    store = LocalStore("pods", "local-fs", tmp_path)
    await fill_slot("pods", await store.open())
    await store.close_all()
    shutil.rmtree(store.directory / "objects")
    with pytest.raises(IntegrityError, match="the directory has no objects"):
        await store.open()
    assert not (store.directory / "objects").exists()
    store.accept_loss()
    adapter = await store.open()
    assert (await adapter.list("")).items == ()
    await store.close_all()


def removed(segment):
    segment.unlink()
    segment.with_suffix(".idx").unlink()


def halved(segment):
    whole = segment.read_bytes()
    segment.write_bytes(whole[: len(whole) // 2])


def halved_between_lines(segment):
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[: len(lines) // 2]))


@pytest.mark.parametrize("ruin", [removed, empty, halved, halved_between_lines])
async def test_a_journal_that_vanished_is_refused(tmp_path, clock, ruin):
    """The only segment missing, empty or truncated: nothing is changed and no number is assigned
    twice."""
    store = LocalStore("events", "local-jsonl", tmp_path, clock=clock)
    await fill(await store.open(), 20)
    await store.close_all()
    (segment,) = store.directory.glob("*.jsonl")
    ruin(segment)
    before = {path.name: path.read_bytes() for path in store.directory.iterdir()}
    with pytest.raises(
        IntegrityError, match=r"but contained record 19.*remove stores/events\.json"
    ):
        await store.open()
    assert {path.name: path.read_bytes() for path in store.directory.iterdir()} == before
    store.accept_loss()
    await fill(await store.open(), 1)
    await store.close_all()


async def test_a_journal_of_other_records_is_refused(tmp_path, clock):
    """As long as before, written anew from the first record on."""
    stores = [
        LocalStore("events", "local-jsonl", tmp_path / name, clock=clock) for name in ("one", "two")
    ]
    for store in stores:
        await fill(await store.open(), 20)
        await store.close_all()
    shutil.rmtree(stores[0].directory)
    shutil.copytree(stores[1].directory, stores[0].directory)
    with pytest.raises(IntegrityError, match="record 19 has changed"):
        await stores[0].open()


async def test_a_journal_cut_while_it_is_open_does_not_verify(tmp_path, clock):
    """A shorter file is not a valid journal for the box, which knows how many records it wrote."""
    store = LocalStore("events", "local-jsonl", tmp_path, clock=clock)
    adapter = await store.open()
    await fill(adapter, 20)
    assert (await adapter.verify()).ok
    (segment,) = store.directory.glob("*.jsonl")
    halved_between_lines(segment)
    report = await adapter.verify()
    assert not report.ok
    assert "the tail was truncated" in report.error.reason
    await store.close_all()


async def test_a_journal_that_only_grew_opens(tmp_path, clock):
    """Killed before it saved: the record has fewer entries than the store."""
    store = LocalStore("events", "local-jsonl", tmp_path, clock=clock)
    await fill(await store.open(), 5)
    await store.close_all()
    record = store.cfg.paths.slot("stores") / "events.json"
    before = record.read_bytes()
    await fill(await store.open(), 5)
    await store.close_all()
    record.write_bytes(before)
    assert len(await all_events(await store.open())) == 10
    await store.close_all()


async def test_a_damaged_record_is_refused(tmp_path):
    """Then the previous content is unknown."""
    store = LocalStore("beads", "local-sqlite", tmp_path)
    await store.open()
    await store.close_all()
    for text in (b"", b"{", b"[]", b'{"id": 3, "mark": "x"}'):
        (store.cfg.paths.slot("stores") / "beads.json").write_bytes(text)
        with pytest.raises(IntegrityError, match="cannot be read"):
            await store.open()
