"""pods external-solid on a line that drops, cuts, repeats and delays: typed errors in time, no update lost, no restart."""

import asyncio
import itertools
import json
import time

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.common import expect_error
from agentbox_testkit.contracts.pods_common import JSON, read_body

from agentbox.core.slot_errors import AdapterTimeout, PreconditionFailed, SlotUnavailable


@pytest_asyncio.fixture
async def adapter(solid_store):
    return await solid_store.open()


@pytest.fixture
def line(solid_store):
    return solid_store.line


async def test_P13_a_read_is_asked_again(adapter, line):
    """After a reply that was lost, one that was cut, and a connection that was refused; three times at most."""
    await adapter.write("a", b"1" * 5000)
    line.lose, line.truncate = 1, 1
    assert await read_body(adapter, "a") == b"1" * 5000
    line.lose = 3
    await expect_error(SlotUnavailable, adapter.head("a"))
    assert (line.lose, line.truncate) == (0, 0)
    assert (await adapter.head("a")).size == 5000


async def test_P13_a_write_is_never_asked_again(adapter, line):
    """The error reports an unknown outcome; the object is complete, either the previous one or the
    new one."""
    await adapter.write("a", b"old" * 1000)
    line.lose = 1
    await expect_error(SlotUnavailable, adapter.write("a", b"new" * 1000))
    line.lose = 1
    await expect_error(SlotUnavailable, adapter.delete("a"))
    assert line.lose == 0
    meta, created = await adapter.write("a", b"newest")
    assert (created, meta.size, await read_body(adapter, "a")) == (True, 6, b"newest")


async def test_P04_a_request_that_arrives_twice_counts_once(adapter, line):
    """Create-only and if-match; the repeated request finds what the first one created."""
    line.duplicate = 1
    _, created = await adapter.write("n", b"0", if_none_match="*")
    for turn in range(1, 6):
        found = await adapter.read("n")
        value = int(b"".join([piece async for piece in found.body]))
        line.duplicate = 3
        await adapter.write("n", b"%d" % (value + 1), if_match=found.meta.etag)
        line.duplicate = 0
        assert await read_body(adapter, "n") == b"%d" % turn
    assert created
    assert line.repeated


async def test_P04_no_update_is_lost_on_a_bad_line(adapter, line):
    """6 tasks append to one list by patches, while some replies are dropped or truncated. A task
    without an outcome reads the list."""
    await adapter.write("a", b"[]", content_type=JSON)
    turns = itertools.count(1)

    async def there(item):
        while True:
            try:
                return item in json.loads(await read_body(adapter, "a"))
            except SlotUnavailable:
                continue

    async def append(item):
        patch = json.dumps([{"op": "add", "path": "/-", "value": item}]).encode()
        while True:
            turn = next(turns)
            line.lose += turn % 5 == 0
            line.truncate += turn % 7 == 0
            try:
                await adapter.patch("a", patch)
                return
            except PreconditionFailed:
                continue
            except SlotUnavailable:
                if await there(item):
                    return

    await asyncio.gather(*(append(f"{task}-{n}") for task in range(6) for n in range(5)))
    line.lose = line.truncate = 0
    found = json.loads(await read_body(adapter, "a"))
    assert sorted(found) == sorted(f"{task}-{n}" for task in range(6) for n in range(5))
    assert line.lost


@pytest.mark.timed
async def test_P13_a_slow_server_is_told_in_time(solid_store, line):
    """Every call ends by its deadline, `health` within 2 s; once the line is quick again, calls are served."""
    adapter = await solid_store.with_options(timeout_seconds=1).open()
    await adapter.write("a", b"1", content_type=JSON)
    line.slow = 30.0
    for call in (
        adapter.read("a"), adapter.head("a"), adapter.list(), adapter.write("a", b"2"), adapter.delete("a"),
        adapter.patch("a", b"[]"),
    ):  # fmt: skip
        started = time.monotonic()
        await expect_error(AdapterTimeout, call)
        assert time.monotonic() - started < 3
    started = time.monotonic()
    assert (await adapter.health()).state == "down"
    assert time.monotonic() - started < 2.5
    line.slow = 0.0
    await adapter.write("a", b"3")
    assert await read_body(adapter, "a") == b"3"
    assert (await adapter.health()).state == "ok"


async def test_P08_a_body_that_breaks_off_is_told(solid_store, line):
    """In the middle of 3 MiB, as a typed error; the next read returns the complete body."""
    adapter = await solid_store.with_options(max_object=4 << 20).open()
    body = b"x" * (3 << 20)
    await adapter.write("a", body)
    found = await adapter.read("a")
    got = await anext(found.body)
    line.truncate = 1

    async def rest():
        nonlocal got
        async for piece in found.body:
            got += piece

    await expect_error(SlotUnavailable, rest())
    assert len(got) < len(body)
    line.truncate = 0
    assert await read_body(adapter, "a") == body
