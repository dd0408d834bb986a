"""Self-federation: the journal of box B meets the contract of the slot while B delivers it with the
token of a session."""

import asyncio

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.events import EventsContract
from agentbox_testkit.contracts.events_common import new_event
from support.api_box import TOKEN
from support.federated_store import FederatedEvents

from agentbox.client.async_client.client import AsyncBoxClient


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = FederatedEvents(tmp_path, clock=clock)
    await made.serve()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest.mark.transport
class TestOfASession(EventsContract):
    async def test_V16_records_stand_in_the_journal_of_the_host(self, store, adapter):
        """In order, once, with the box that they are of; reserved types too, for they are B's own."""
        written = [(await adapter.append([new_event(f"task.x{n}")]))[0] for n in range(20)]
        async with AsyncBoxClient(store.url, token=TOKEN) as operator:
            there = await _delivered(operator, len(written))
        assert [event["origin"]["seq"] for event in there] == [event.seq for event in written]
        assert {event["origin"]["box"] for event in there} == {store.box}
        assert [event["origin"]["hash"] for event in there] == [event.hash for event in written]


async def _delivered(operator, count):
    for _ in range(100):
        events = (await operator.call("read_events", query={"limit": 1000}))["events"]
        if len(there := [event for event in events if event.get("origin")]) >= count:
            return there
        await asyncio.sleep(0.1)
    raise AssertionError(f"{len(there)} of {count} records arrived")
