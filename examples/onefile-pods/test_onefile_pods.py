"""OneFilePods keeps the contract of the pods slot."""

import pytest_asyncio
from agentbox_testkit.clock import ManualClock
from agentbox_testkit.contracts.pods import OPTIONS, PodsContract
from agentbox_testkit.local_store import LocalStore


@pytest_asyncio.fixture
async def store(tmp_path):
    made = LocalStore(
        "pods", "onefile_pods:OneFilePods", tmp_path, clock=ManualClock(), options=OPTIONS
    )
    yield made
    await made.close_all()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


class TestOneFilePods(PodsContract):
    pass
