"""memory local-sqlite meets the contract of the slot through the HTTP API too, by the routes that
any client uses."""

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.memory import OPTIONS, MemoryContract
from support.http_slots import HttpMemory
from support.served_store import ServedStore


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = ServedStore(
        "memory",
        "over-http",
        tmp_path,
        served="local-sqlite",
        clock=clock,
        options=OPTIONS,
        make=HttpMemory,
    )
    await made.serve()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest.mark.transport
class TestOverHttp(MemoryContract):
    pass
