"""pods local-fs meets the contract of the slot through the HTTP API too, by the routes that any
client uses."""

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.pods import OPTIONS, PodsContract
from support.http_slots import HttpPods
from support.served_store import ServedStore


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = ServedStore(
        "pods",
        "over-http",
        tmp_path,
        served="local-fs",
        clock=clock,
        options=OPTIONS,
        make=HttpPods,
    )
    await made.serve()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest.mark.transport
class TestOverHttp(PodsContract):
    pass
