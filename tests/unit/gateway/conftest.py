"""Gateways in this process, and agents at the agent API of one that has a real API behind it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support.agent_api_caller import (
    ALL_TOOLS,
    FIRST_AGENT_ID,
    SECOND_AGENT_ID,
    AgentApiCaller,
)
from support.api_box import ApiBox
from support.fake_authorizer import right
from support.gateway_fixture import GatewayFixture

Start = Callable[..., Awaitable[GatewayFixture]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a gateway; `limits` as in [limits], the rest as in [egress]."""
    async with AsyncExitStack() as stack:

        async def make(limits: dict[str, Any] | None = None, **egress: Any) -> GatewayFixture:
            gateway = GatewayFixture(tmp_path / "box", egress, limits or {})
            await gateway.server.open()
            stack.push_async_callback(gateway.server.close)
            return gateway

        yield make


@pytest.fixture
async def gateway(start: Start) -> GatewayFixture:
    return await start()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiBox]:
    box = ApiBox(tmp_path_factory.mktemp("box"), orchestrator=False)
    box.paths.token("gateway").parent.mkdir(parents=True, exist_ok=True)
    box.paths.token("gateway").write_text("a-token-of-this-boot")
    with box:
        yield box


@pytest.fixture
async def agent_api(api: ApiBox) -> AsyncIterator[GatewayFixture]:
    gateway = GatewayFixture(api.paths.prefix, {}, {}, api.plan)
    gateway.authorizer.add(
        FIRST_AGENT_ID,
        "t1",
        [*ALL_TOOLS, right("env", "read", "A_SECRET")],
        name="one",
        secrets=("A_SECRET",),
    )
    gateway.authorizer.add(SECOND_AGENT_ID, "t2", ALL_TOOLS, name="one2")
    await gateway.server.open()
    yield gateway
    await gateway.server.close()


@pytest.fixture
async def first_agent(agent_api: GatewayFixture) -> AsyncIterator[AgentApiCaller]:
    agent = AgentApiCaller(agent_api, "t1")
    yield agent
    await agent.http.aclose()


@pytest.fixture
async def second_agent(agent_api: GatewayFixture) -> AsyncIterator[AgentApiCaller]:
    agent = AgentApiCaller(agent_api, "t2")
    yield agent
    await agent.http.aclose()
