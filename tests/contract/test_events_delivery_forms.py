"""V14, V15 and V17 against a sink that is not an agentbox: what is sent, when it is repeated, and
what is given up."""

import asyncio
from itertools import pairwise

import pytest
import pytest_asyncio
from agentbox_testkit.clock import ScaledClock
from agentbox_testkit.contracts.events_common import all_events, fill, new_event
from agentbox_testkit.contracts.events_delivery import wait_delivered, wait_for_trouble
from agentbox_testkit.local_store import LocalStore
from events_sink import generic_sink

SCALE = 40  # a minute in a second and a half
TOKEN = "the-token-of-the-sink"
BATCH, SINGLE = "application/cloudevents-batch+json", "application/cloudevents+json"


@pytest.fixture
def sink(tmp_path):
    with generic_sink(tmp_path / "sink") as made:
        yield made


@pytest_asyncio.fixture
async def store(tmp_path, sink):
    options, secrets = {"endpoint": sink.url}, {"token": TOKEN}
    made = LocalStore(
        "events",
        "external-http",
        tmp_path,
        clock=ScaledClock(SCALE),
        options=options,
        secrets=secrets,
    )
    yield made
    await made.close_all()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


async def test_V15_batches_of_cloudevents(sink, store, adapter):
    """At most 100 records and at most 1 MiB a request, in order, with the bearer; members and extensions as stated."""
    await fill(adapter, 250)
    large = [
        await adapter.append([new_event(data={"x": "\u00e9" * 30_000})] * 10) for _ in range(4)
    ]
    (last,) = await adapter.append(
        [new_event(subject="s", agent_id="a", session_id="b", source="urn:x")]
    )
    await wait_delivered(adapter)
    asked = sink.rows("asked")
    assert {(row["form"], row["authorization"]) for row in asked} == {(BATCH, f"Bearer {TOKEN}")}
    assert max(row["count"] for row in asked) <= 100
    assert 900_000 < max(row["bytes"] for row in asked) <= 1 << 20
    assert sink.seqs() == list(range(250 + 10 * len(large) + 1))
    wire = last.to_wire()
    assert sink.rows("taken")[-1] == {
        "specversion": "1.0", "id": wire["id"], "source": "urn:x", "type": "agentbox.test.thing", "time": wire["ts"],
        "subject": "s", "datacontenttype": "application/json", "data": wire["data"], "agentboxseq": str(wire["seq"]),
        "agentboxhash": wire["hash"], "agentboxprev": wire["prev_hash"], "agentboxagent": "a", "agentboxsession": "b",
    }  # fmt: skip


async def test_V15_single_events_after_a_415(sink, adapter):
    """One refused batch, then one event a request, in order."""
    sink.rule(single=True)
    await fill(adapter, 30)
    await wait_delivered(adapter)
    first, *rest = sink.rows("asked")
    assert (first["form"], first["status"]) == (BATCH, 415)
    assert [(row["form"], row["count"], row["status"]) for row in rest] == [(SINGLE, 1, 202)] * 30
    assert sink.seqs() == list(range(30))


async def test_V15_waits_grow_to_a_minute(sink, adapter):
    """From one second, doubled, up to half of each random; then everything is sent once."""
    sink.rule(status=503)
    await fill(adapter, 5)
    while len(sink.rows("asked")) < 9:
        await asyncio.sleep(0.05)
    waits = [(b["at"] - a["at"]) * SCALE for a, b in pairwise(sink.rows("asked"))]
    for turn, wait in enumerate(waits):
        assert wait >= min(60, 2**turn) / 2 * 0.95
    assert max(waits[6:]) >= 30 * 0.95
    sink.rule()
    await wait_delivered(adapter)
    assert sink.seqs() == list(range(5))


@pytest.mark.parametrize("status", [429, 503])
async def test_V15_retry_after_is_honoured(sink, adapter, status):
    """Nothing is sent before that time, though the own delay would have passed long ago."""
    sink.rule(status=status, headers={"Retry-After": "40"})
    await fill(adapter, 1)
    await wait_for_trouble(adapter)
    sink.rule()
    await wait_delivered(adapter)
    first, second = sink.rows("asked")
    assert (second["at"] - first["at"]) * SCALE >= 40
    assert sink.seqs() == [0]


@pytest.mark.parametrize("status", [401, 403, 404, 410, 302])
async def test_V17_what_a_person_must_mend_holds_the_cursor(sink, adapter, status):
    """Degraded at once, with the status and without the token; nothing is given up, and a fix is
    sufficient."""
    sink.rule(status=status)
    await fill(adapter, 150)
    told = await wait_for_trouble(adapter)
    assert (told.cursor, told.dead, told.undelivered) == (-1, 0, 150)
    health = await adapter.health()
    assert health.state == "degraded"
    assert str(status) in health.detail
    assert TOKEN not in health.detail
    sink.rule()
    await wait_delivered(adapter)
    assert sink.seqs() == list(range(150))
    assert (await adapter.health()).state == "ok"


async def test_V17_the_bad_ones_are_found_and_the_rest_goes_on(sink, store, adapter):
    """Three among 250: dead letters with status and reason, an event each, everything else once and in order."""
    sink.rule(bad=["bad"])
    for _ in range(3):
        await fill(adapter, 60)
        await adapter.append([new_event(subject="bad")])
    await fill(adapter, 67)
    told = await wait_delivered(adapter)
    assert [(letter.seq, letter.status, letter.reason) for letter in reversed(told.letters)] == [
        (seq, 422, "the sink responded 422: so says the rule: 422") for seq in (60, 121, 182)
    ]  # fmt: skip
    events = await all_events(adapter)
    rejected = [event for event in events if event.type == "journal.delivery.rejected"]
    assert [event.data["seq"] for event in rejected] == [60, 121, 182]
    assert rejected[0].data["id"] == events[60].id
    assert sink.seqs() == [event.seq for event in events if event.subject != "bad"]
    adapter = await store.reopen()
    assert (await adapter.delivery()).dead == 3


async def test_V17_a_sink_for_small_requests_gets_small_ones(sink, adapter):
    """413 for a batch says nothing about its records; one that is too large alone becomes a dead
    letter."""
    sink.rule(largest=20_000)
    await fill(adapter, 100)
    (large,) = await adapter.append([new_event(data={"x": "y" * 30_000})])
    await fill(adapter, 10)
    told = await wait_delivered(adapter)
    assert [(letter.seq, letter.status) for letter in told.letters] == [(large.seq, 413)]
    assert sink.seqs() == [seq for seq in range(112) if seq != large.seq]


async def test_V17_a_sink_that_refuses_everything_fills_nothing(sink, adapter):
    """Each record makes one event, and that event none."""
    sink.rule(status=400)
    await fill(adapter, 20)
    told = await wait_delivered(adapter)
    assert (told.dead, (await adapter.head())[0]) == (40, 39)
    assert sink.seqs() == []


async def test_V15_a_journal_that_was_replaced_is_delivered_from_its_beginning(
    sink, store, adapter
):
    """The cursor belongs to its journal: another one in the same directory is not treated as
    delivered."""
    await fill(adapter, 20)
    await wait_delivered(adapter)
    await store.close_all()
    for path in store.directory.glob("*.jsonl"):
        path.unlink()
        path.with_suffix(".idx").unlink()
    store.accept_loss()
    adapter = await store.open()
    await fill(adapter, 25)
    await wait_delivered(adapter)
    assert sink.seqs() == [*range(20), *range(25)]


async def test_V14_a_status_that_meets_a_removal_is_that_after_it(sink, store, monkeypatch):
    """With `tee_local = false` the record that it was about to read is delivered and removed."""
    sink.rule(status=503)
    adapter = await store.with_options(tee_local=False, segment_size=20_000).open()
    for _ in range(4):
        await fill(adapter, 60)
    journal, read = adapter._journal, adapter._journal.read

    async def after_the_removal(**arguments):
        monkeypatch.setattr(journal, "read", read)
        sink.rule()
        async with asyncio.timeout(20):
            while len(list(store.directory.glob("*.jsonl"))) > 1:
                await asyncio.sleep(0.01)
        return await read(**arguments)

    monkeypatch.setattr(journal, "read", after_the_removal)
    status = await adapter.delivery()
    assert (status.sink, status.dead) == (True, 0)
    await wait_delivered(adapter)


async def test_V14_pruning_offers_only_what_was_delivered(sink, store):
    """With `tee_local` the segments stay after delivery; none is offered before, and all that are
    sealed after it."""
    sink.rule(status=503)
    adapter = await store.with_options(tee_local=True, segment_size=20_000).open()
    for _ in range(4):
        await fill(adapter, 60)
    sealed = len(list(store.directory.glob("*.seal.json")))
    assert sealed > 1
    assert await adapter.sealed_before("9999-01-01") == []
    sink.rule()
    await wait_delivered(adapter)
    offered = await adapter.sealed_before("9999-01-01")
    assert len(offered) == sealed
    assert await adapter.sealed_before(offered[0].name[:10]) == []
    assert await adapter.remove_through(offered[0].last_seq) == offered[0].last_seq + 1
    assert len(list(store.directory.glob("*.seal.json"))) == sealed - 1
    assert (await adapter.verify()).error is None
