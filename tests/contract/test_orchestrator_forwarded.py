"""orchestrator external-stdio over `bridge --url`: this box's agents are those of another box."""

import pytest
import pytest_asyncio

from agentbox.adapters.deadline import Deadline
from agentbox.testing.bridge_box import bridge, stdio
from agentbox.testing.contracts.orchestrator import OrchestratorContract
from agentbox.testing.served_agents import HostLab, HostStore, ServedAgents

pytestmark = pytest.mark.asyncio(loop_scope="module")
TOKEN_VARIABLE = "PEER_TOKEN"


def forwarded(served):
    """The class, not open, with a token that has the scopes of agents and no more."""
    command = bridge("--url", served.url, "--token-env", TOKEN_VARIABLE)
    return stdio(served.host.paths, *command, env={TOKEN_VARIABLE: served.token})


async def opened(served):
    adapter = forwarded(served)
    await adapter.open(Deadline.after(10))
    return adapter


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory):
    made = ServedAgents(tmp_path_factory.mktemp("host"))
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(served):
    """One child for all tests, and another after it was lost."""
    kept = []

    async def usable():
        await served.start()
        if kept and (await kept[0].health()).state != "ok":
            await kept.pop().close()
        if not kept:
            kept.append(await opened(served))
        return kept[0]

    yield usable
    for one in kept:
        await one.close()


@pytest_asyncio.fixture(loop_scope="module")
async def store(served):
    made = HostStore(served, forwarded)
    await made.begin()
    yield made
    await made.end()


@pytest_asyncio.fixture(loop_scope="module")
async def adapter(shared):
    return await shared()


@pytest_asyncio.fixture(loop_scope="module")
async def lab(tmp_path):
    made = HostLab(tmp_path, opened)
    yield made
    await made.close()


class TestForwarded(OrchestratorContract):
    pass
