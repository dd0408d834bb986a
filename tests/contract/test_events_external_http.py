"""events external-http meets the contract of the slot while it delivers to the API of another box."""

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.events import EventsContract
from support.delivery_store import DeliveryStore


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = DeliveryStore(tmp_path, clock=clock)
    await made.serve()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest.mark.transport
class TestExternalHttp(EventsContract):
    pass
