"""What opening a long journal skips is checked in the background."""

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.events_common import all_events, fill, new_event
from agentbox_testkit.local_store import LocalStore
from agentbox_testkit.wait import wait_until

from agentbox.adapters.events.journal import recovery
from agentbox.adapters.events.journal.segments import segment_files
from agentbox.core.slot_errors import IntegrityError


@pytest_asyncio.fixture
async def store(tmp_path, monkeypatch):
    """A journal of 3,500 records of which opening checks the newest 1,000."""
    monkeypatch.setattr(recovery, "MAX_KEYS", 1000)
    made = LocalStore("events", "local-jsonl", tmp_path)
    await fill(await made.open(), 3500)
    await made.close_all()
    yield made
    await made.close_all()


def damage(store, record, before=b'"n":', after=b'"m":'):
    (path,) = segment_files(store.directory)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[record] = lines[record].replace(before, after)
    path.write_bytes(b"".join(lines))


async def test_damage_is_found_takes_the_slot_down_and_is_remembered(store):
    """Open succeeds; soon health reports the position, calls raise IntegrityError, and the next
    open fails at once."""
    damage(store, 100)
    adapter = await store.open()
    await wait_until(
        lambda: adapter._open_journal.damage is not None, "the check has come to the damage"
    )
    health = await adapter.health()
    assert (health.state, ":101 " in health.detail) == ("down", True)
    for call in (adapter.append([new_event()]), adapter.head(), adapter.read()):
        with pytest.raises(IntegrityError) as caught:
            await call
        assert (caught.value.members["line"], caught.value.members["seq"]) == (101, 100)
    with pytest.raises(IntegrityError, match=":101 "):
        await store.reopen()


async def test_a_mended_journal_opens_again(store):
    """The note of the damage is removed, and the records are complete."""
    damage(store, 100)
    adapter = await store.open()
    await wait_until(lambda: adapter._open_journal.damage is not None, "found")
    await store.close_all()
    damage(store, 100, b'"m":', b'"n":')
    adapter = await store.open()
    assert not (store.directory / recovery.DAMAGE_FILE).exists()
    assert len(await all_events(adapter)) == 3500


async def test_damage_in_the_newest_part_is_found_by_open(store):
    """Within the records that are checked at once."""
    damage(store, 3000)
    with pytest.raises(IntegrityError, match=":3001 "):
        await store.open()


async def test_closing_stops_the_check(store):
    """It is not waited for to the end."""
    adapter = await store.open()
    await adapter.close()
    assert (await adapter.health()).state == "down"
