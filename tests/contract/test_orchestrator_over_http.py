"""orchestrator local-process meets the contract of the slot through the HTTP API too, by the routes
that any client uses."""

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.orchestrator import OrchestratorContract
from support.served_agents import HostLab, HostStore, ServedAgents

from agentbox.core.deadline import Deadline

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def opened(served):
    """The class over the routes."""
    adapter = served.http_adapter()
    await adapter.open(Deadline.after(10))
    return adapter


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory):
    made = ServedAgents(tmp_path_factory.mktemp("host"))
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def store(served):
    made = HostStore(served, ServedAgents.http_adapter)
    await made.start()
    yield made
    await made.end()


@pytest_asyncio.fixture(loop_scope="module")
async def adapter(store):
    return await store.open()


@pytest_asyncio.fixture(loop_scope="module")
async def lab(tmp_path):
    made = HostLab(tmp_path, opened)
    yield made
    await made.close()


@pytest.mark.transport
class TestOverHttp(OrchestratorContract):
    pass
