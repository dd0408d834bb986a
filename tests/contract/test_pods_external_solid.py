"""pods external-solid keeps the contract of the slot on a real Community Solid Server."""

import pytest
import pytest_asyncio
from solid_server import running
from solid_store import SolidStore

from agentbox.testing.contracts.pods import PodsContract


@pytest.fixture(scope="module")
def server():
    """One for all; a test that kills it is followed by a start."""
    with running() as made:
        yield made


@pytest_asyncio.fixture
async def store(server, tmp_path, clock):
    server.start()
    made = SolidStore(server, tmp_path, clock=clock)
    async with made.line:
        yield made
        await made.close_all()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


class TestCommunitySolidServer(PodsContract):
    longest = 240  # the server appends `$.unknown` and `.meta` to the name of a file
    has_quota = False

    async def fill(self, store, adapter, paths):
        """As files: a thousand requests take the server half a minute."""
        for path in paths:
            file = store.directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
