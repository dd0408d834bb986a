"""V14 to V16 against an agentbox, over bad connections, through crashes of both sides, and with
wrong clocks."""

import asyncio
import itertools
import json
import time

import pytest
import pytest_asyncio
from agentbox_testkit.clock import ScaledClock
from agentbox_testkit.contracts.events_common import all_events, fill, new_event
from agentbox_testkit.contracts.events_delivery import box_events, wait_delivered, wait_for_trouble
from agentbox_testkit.fault_proxy import FaultProxy
from agentbox_testkit.local_store import LocalStore
from support import tables
from support.api_box import TOKEN, ApiBox

from agentbox.client.async_client.client import AsyncBoxClient

PRIVACY = {
    "enabled": True, "mode": "rules", "entities": ("*",),
    "policy": dict.fromkeys(("beads", "pods", "memory", "events", "orchestrator"), "strict"),
}  # fmt: skip
NAMES = itertools.count()


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The box that is the sink; a test that kills it starts it again."""
    with ApiBox(
        tmp_path_factory.mktemp("host"), orchestrator=False, privacy=tables.privacy(**PRIVACY)
    ) as box:
        yield box


@pytest_asyncio.fixture
async def reader(host):
    async with AsyncBoxClient(host.url, token=TOKEN) as client:
        yield client


@pytest.fixture
def name():
    """Of the box that delivers: a new one for each test."""
    return f"box-{next(NAMES)}"


@pytest_asyncio.fixture
async def line(host):
    async with FaultProxy(host.plan.api.port) as relay:
        yield relay


@pytest_asyncio.fixture
async def store(tmp_path, host, reader, line, name, clock):
    """The box, over the connection."""
    wanted = {"name": name, "scopes": ["events:write"], "origin_box": name}
    token = (await reader.call("create_token", body=wanted))["value"]
    options = {"endpoint": f"{line.url}/v1/events", "timeout_seconds": 2}
    made = LocalStore(
        "events", "external-http", tmp_path, clock=clock, options=options, secrets={"token": token}
    )
    yield made
    await made.close_all()


@pytest.fixture
def clock(request):
    """A minute per second, unless a test sets another pace."""
    return ScaledClock(getattr(request, "param", 60))


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


async def same(adapter, reader, name):
    """Every record of the box is at the host: in order, once, with its own hashes; and the host's
    chain is valid."""
    await wait_delivered(adapter)
    here, there = await all_events(adapter), await box_events(reader, name)
    assert [event.origin.seq for event in there] == [event.seq for event in here]
    assert [event.origin.hash for event in there] == [event.hash for event in here]
    assert (await reader.call("verify_events", body={}))["ok"]
    return here


async def test_V16_what_arrives_is_what_was_written(adapter, reader, name, host):
    """Not masked a second time, of reserved types too, with its own source; a delivered record cannot be forged by others."""
    text = "mail to jane.doe@example.org"
    await adapter.append(
        [new_event("agent.started", subject=text, data={"said": text}, source="urn:x:y")]
    )
    await same(adapter, reader, name)
    (event,) = await box_events(reader, name)
    assert (event.type, event.subject, event.data["said"], event.source) == (
        "agent.started",
        text,
        text,
        "urn:x:y",
    )
    masked = await reader.call(
        "append_events", body={"events": [{"type": "test.a", "data": {"said": text}}]}
    )
    shown = await reader.call("show_event", {"seq": str(masked["first_seq"])})
    assert text not in json.dumps(shown)


@pytest.mark.timed  # its clock is 1,200 times as fast: a pause of the machine is half an hour
@pytest.mark.parametrize("clock", [1200], indirect=True)
async def test_V14_an_hour_without_the_sink(adapter, reader, name, line, clock):
    """Appends continue; degraded, never down; the gauges show it. Then everything, in order, once."""
    line.refuse = 1 << 30
    states = []
    while clock.monotonic() < 3600 or len(states) < 20:
        await fill(adapter, 5)
        states.append((await adapter.health()).state)
        await asyncio.sleep(0.02)
    assert (set(states) | {"ok"}, states[-1]) == ({"ok", "degraded"}, "degraded")
    sample = adapter.deps.metrics.registry.get_sample_value
    head, _ = await adapter.head()
    assert sample("agentbox_events_undelivered") == head + 1
    assert sample("agentbox_events_oldest_undelivered_seconds") > 3000
    line.refuse = 0
    assert len(await same(adapter, reader, name)) == head + 1 >= 100
    assert (await adapter.health()).state == "ok"
    assert (
        sample("agentbox_events_undelivered")
        == sample("agentbox_events_oldest_undelivered_seconds")
        == 0
    )


async def test_V14_a_dead_sink_slows_no_append(adapter, tmp_path, line):
    """Beside the local class on the same disk, turn by turn: no slower but for the machine's own noise."""
    line.refuse = 1 << 30
    local = LocalStore("events", "local-jsonl", tmp_path / "beside")
    took = {"local": [], "external": []}
    both = {"local": await local.open(), "external": adapter}
    for _ in range(300):
        for kind, one in both.items():
            began = time.perf_counter()
            await one.append([new_event(data={"x": "y" * 1000})])
            took[kind].append(time.perf_counter() - began)
    await local.close_all()
    middle = {kind: sorted(times)[len(times) // 2] for kind, times in took.items()}
    assert middle["external"] < 2 * middle["local"] + 0.005


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", ["lose", "refuse", "truncate", "duplicate"])
async def test_V15_a_bad_line_loses_and_repeats_nothing(adapter, reader, name, line, fault):
    """Replies dropped and truncated, requests sent twice, connections refused, repeatedly while
    records arrive."""
    for turn in range(6):
        setattr(line, fault, 2 if turn % 2 else 1)
        line.lose += fault == "refuse"  # a connection that is open is not refused
        await fill(adapter, 40)
        async with asyncio.timeout(30):
            while getattr(line, fault):
                await fill(adapter, 1)
                await asyncio.sleep(0.02)
    await same(adapter, reader, name)
    assert (line.lost, line.repeated) == (
        {"lose": 9, "refuse": 6}.get(fault, 0),
        9 if fault == "duplicate" else 0,
    )


async def test_V15_a_slow_line_is_given_up_and_tried_again(adapter, reader, name, line):
    """Slower than `timeout_seconds`: the sink accepted it, and need not store it again."""
    line.slow = 3.0
    await fill(adapter, 20)
    assert "did not respond within 2 s" in (await wait_for_trouble(adapter)).trouble
    line.slow = 0.05
    await same(adapter, reader, name)


@pytest.mark.parametrize("clock", [1], indirect=True)
async def test_V15_a_sender_killed_in_the_middle_sends_the_rest(store, reader, name, full):
    """SIGKILL while it appends and delivers, three times: six with --full."""
    for kill in range(0, 12, 2 if full else 5):
        async with store.worker("append-events", "3000", "8") as worker:
            for _ in range(40 + 60 * kill):
                assert await worker.stdout.readline()
            worker.kill()
            await worker.communicate()
    assert len(await same(await store.open(), reader, name)) > 1000


async def test_V15_a_sink_killed_in_the_middle_gets_everything_once(
    adapter, reader, name, host, full
):
    """SIGKILL while 1500 records arrive, twice: three times with --full; it resumes from what it
    had stored."""
    moments = (0.1, 0.3, 0.2) if full else (0.1, 0.3)
    writing = asyncio.create_task(fill(adapter, 1500))
    for seconds in moments:
        await asyncio.sleep(seconds)
        host.kill()
        await fill(adapter, 200)
        host.start()  # not in a thread: the child ends with the thread that created it
    await writing
    assert len(await same(adapter, reader, name)) == 1500 + 200 * len(moments)


async def test_V14_clocks_that_step(adapter, reader, name, line, clock):
    """Five minutes ahead, an hour back: what is delivered is not late, and what waits is, by the clock that cannot step."""
    clock.shift(300)
    await fill(adapter, 10)
    await same(adapter, reader, name)
    assert (await adapter.health()).state == "ok"
    line.refuse, line.lose = 1 << 30, 1  # what is open ends, and nothing new opens
    clock.shift(-3600)
    await fill(adapter, 1)
    await wait_for_trouble(adapter)
    assert (await adapter.health()).state == "ok"
    await asyncio.sleep(1.2)
    assert (await adapter.health()).state == "degraded"
    line.refuse = 0
    await same(adapter, reader, name)


async def test_V14_delivered_segments_go_where_they_are_not_kept(store, reader, name, line):
    """`tee_local = false`: complete sealed segments, once the sink has them; the journal stays
    valid, opens, and continues."""
    adapter = await store.with_options(tee_local=False, segment_size=20_000).open()
    line.refuse = 1 << 30
    for _ in range(6):
        await fill(adapter, 60)
    count = len(list(store.directory.glob("*.jsonl")))
    line.refuse = 0
    told = await wait_delivered(adapter)
    assert count > 4
    await asyncio.sleep(0.2)
    assert len(list(store.directory.glob("*.jsonl"))) == 1
    report = await adapter.verify()
    assert (report.ok, report.last_seq) == (True, told.cursor)
    assert report.first_seq > 300
    adapter = await store.reopen()
    await fill(adapter, 10)
    await wait_delivered(adapter)
    there = [event.origin.seq for event in await box_events(reader, name)]
    assert there == list(range((await adapter.head())[0] + 1))


async def test_V14_a_sink_may_come_later_and_change(store, reader, name, line):
    """Without an address it is degraded in time and appends; `adopt` brings one without a moment of rest."""
    endpoint = store.cfg.options.endpoint
    adapter = await store.with_options(endpoint="").open()
    await fill(adapter, 10)
    assert (await wait_for_trouble(adapter)).held == "no mesh session"
    assert (await adapter.health()).state == "degraded"
    appending = asyncio.create_task(fill(adapter, 300))
    assert await adapter.adopt(store.with_options(endpoint=endpoint).cfg)
    await appending
    await same(adapter, reader, name)
    assert not await adapter.adopt(store.with_options(max_size=1 << 20).cfg)


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [("http://192.0.2.1/v1/events", "loopback"), ("ftp://127.0.0.1", "http"), ("x", "http")],
)
async def test_V14_an_address_that_may_not_be_used(store, endpoint, reason):
    """Events are stored and health reports why they are not delivered."""
    adapter = await store.with_options(endpoint=endpoint).open()
    await fill(adapter, 3)
    assert reason in (await wait_for_trouble(adapter)).held
    assert (await adapter.health()).state == "degraded"


async def test_V16_a_token_without_a_box_delivers_nothing(store, reader):
    """403, reported in the health; a token of the box fixes it."""
    made = await reader.call("create_token", body={"name": "plain", "scopes": ["events:write"]})
    good = dict(store.cfg.secrets)
    adapter = await store.with_secrets(token=made["value"]).open()
    await fill(adapter, 5)
    assert "not bound to a box" in (await wait_for_trouble(adapter)).held
    assert await adapter.adopt(store.with_secrets(**good).cfg)
    await wait_delivered(adapter)


async def test_V16_a_second_journal_under_one_name_is_held(adapter, store, reader, name):
    """409: nothing of it is stored, nothing is acknowledged and thrown away."""
    await fill(adapter, 20)
    here = await same(adapter, reader, name)
    other = await store.sibling("other").open()
    await fill(other, 30)
    told = await wait_for_trouble(other)
    assert "belongs to another journal" in told.held
    assert (told.cursor, told.dead) == (-1, 0)
    assert [event.origin.hash for event in await box_events(reader, name)] == [
        event.hash for event in here
    ]
    await other.close()
