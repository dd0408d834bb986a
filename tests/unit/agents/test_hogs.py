"""Each hog ends alone, at its own limit, and the agent beside it is answered as before."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.wait import wait_until
from support import hogs
from support.agent_host import AgentHostBox
from support.hogs import HOGS, EchoAgent
from support.host_agents import open_orchestrator

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.sandbox.monitor import shared_memory

_PATIENCE = 20
BUDGET = 100.0  # milliseconds, 95 of 100 round trips of another agent
MANY = 50  # round trips that are enough for that


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(tmp_path_factory.mktemp("box"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
async def adapter(box: AgentHostBox) -> AsyncIterator[LocalProcessOrchestrator]:
    async with open_orchestrator(box) as made:
        yield made


@pytest.mark.limit("memory", case="memory of many")
@pytest.mark.limit("cpu", case="cpu")
@pytest.mark.limit("agent_wall_seconds", case="cpu")
@pytest.mark.limit("pids", case="processes")
@pytest.mark.limit("fds", case="descriptors")
@pytest.mark.limit("tmp", case="disk")
@pytest.mark.limit("branch_disk", case="branch")
@pytest.mark.limit("stdout", case="output")
@pytest.mark.timed  # the other agent has a budget of time
@pytest.mark.parametrize("kind", list(HOGS))
async def test_a_hog_ends_alone(adapter: LocalProcessOrchestrator, kind: str) -> None:
    """By its own limit, which its exit, its items and the record name; the other agent continues,
    within its budget."""
    async with EchoAgent(adapter) as neighbour, asyncio.timeout(_PATIENCE):
        info = await hogs.wait_ended(adapter, await hogs.start(adapter, kind))
        while len(neighbour.samples) < MANY:
            await asyncio.sleep(0.02)
    assert info.exit is not None
    reason, limit = hogs.expected(info, kind)
    assert info.exit.reason == reason
    found = [
        data
        for kind, data in await recorded_events(adapter, info.handle.agent_id)
        if kind == "limit.breached"
    ]
    assert [data["limit"] for data in found] == ([limit] if limit else [])
    if kind == "output":
        items = [item async for item in adapter.stream(info.handle.agent_id)]
        assert "truncated" in [
            json.loads(item.data)["state"] for item in items if item.kind == "state"
        ]
    if not limit:
        assert info.exit.code == 1  # the kernel refused, and Python reported it
    slowest = sorted(neighbour.samples)[int(0.95 * len(neighbour.samples))]
    assert slowest < BUDGET, sorted(neighbour.samples)[-10:]


async def test_what_a_hog_held_in_shared_memory_goes_with_it(
    adapter: LocalProcessOrchestrator,
) -> None:
    """Otherwise its end would free nothing: a file there is memory that no process owns."""
    async with asyncio.timeout(_PATIENCE):
        info = await hogs.wait_ended(adapter, await hogs.start(adapter, "shared memory"))
    assert info.exit is not None
    assert info.exit.reason == "limit"
    name = f"agentbox-hog-{info.handle.agent_id}-*"
    await wait_until(
        lambda: not list(Path(shared_memory.DIRECTORY).glob(name)), "nothing of it is left"
    )


async def recorded_events(
    adapter: LocalProcessOrchestrator, agent_id: str
) -> list[tuple[str, Any]]:
    lines = await agent_host_client(lambda: adapter).read_record(0, wait_s=5)
    return [(line.type, line.data) for line in lines if line.agent_id == agent_id]
