"""Gateways in this process, and agents at the door of one that has a real API behind it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agentbox.testing.agent_api_caller import (
    ALL_TOOLS,
    FIRST_AGENT_ID,
    SECOND_AGENT_ID,
    AgentApiCaller,
)
from agentbox.testing.api_box import ApiBox
from agentbox.testing.fake_authorizer import right
from agentbox.testing.gateway_fixture import GatewayFixture

Start = Callable[..., Awaitable[GatewayFixture]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a gateway; `limits` as in [limits], the rest as in [egress]."""
    async with AsyncExitStack() as stack:

        async def make(limits: dict[str, Any] | None = None, **reach: Any) -> GatewayFixture:
            room = GatewayFixture(tmp_path / "box", reach, limits or {})
            await room.server.open()
            stack.push_async_callback(room.server.close)
            return room

        yield make


@pytest.fixture
async def room(start: Start) -> GatewayFixture:
    return await start()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiBox]:
    box = ApiBox(tmp_path_factory.mktemp("box"), orchestrator=False)
    box.paths.token("gateway").parent.mkdir(parents=True, exist_ok=True)
    box.paths.token("gateway").write_text("a-token-of-this-boot")
    with box:
        yield box


@pytest.fixture
async def door(api: ApiBox) -> AsyncIterator[GatewayFixture]:
    room = GatewayFixture(api.paths.prefix, {}, {}, api.plan)
    room.authorizer.add(
        FIRST_AGENT_ID,
        "t1",
        [*ALL_TOOLS, right("env", "read", "A_SECRET")],
        name="one",
        secrets=("A_SECRET",),
    )
    room.authorizer.add(SECOND_AGENT_ID, "t2", ALL_TOOLS, name="one2")
    await room.server.open()
    yield room
    await room.server.close()


@pytest.fixture
async def one(door: GatewayFixture) -> AsyncIterator[AgentApiCaller]:
    agent = AgentApiCaller(door, "t1")
    yield agent
    await agent.http.aclose()


@pytest.fixture
async def two(door: GatewayFixture) -> AsyncIterator[AgentApiCaller]:
    agent = AgentApiCaller(door, "t2")
    yield agent
    await agent.http.aclose()
