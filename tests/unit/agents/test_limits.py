"""A limit that is near, and one that is crossed, as callers and the record see them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_host import MIB, AgentHostBox
from support.host_agents import open_orchestrator

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.contracts.orchestrator import AgentInfo, AgentSpec, Limits
from agentbox.core.ids import uuid7

_PATIENCE = 60


@pytest.fixture
async def adapter(tmp_path: Path) -> AsyncIterator[LocalProcessOrchestrator]:
    box = AgentHostBox(tmp_path)
    box.start()
    async with open_orchestrator(box) as made:
        yield made
    box.stop()


async def spawned(adapter: LocalProcessOrchestrator, script: str, **limits: Any) -> str:
    spec = AgentSpec(
        name="hog",
        argv=("python3", "-I", "-c", script),
        profile="sandboxed",
        limits=Limits(**limits),
    )
    return (await adapter.spawn(spec, request_id=uuid7())).agent_id


async def wait_for_end(adapter: LocalProcessOrchestrator, agent_id: str) -> AgentInfo:
    async with asyncio.timeout(_PATIENCE):
        async for _ in adapter.stream(agent_id):
            pass
    return await adapter.get(agent_id)


async def limit_events(adapter: LocalProcessOrchestrator) -> list[tuple[str, Any]]:
    """What the record has about limits so far."""
    lines = await agent_host_client(lambda: adapter).read_record(0, wait_s=5)
    return [(line.type, line.data) for line in lines if line.type.startswith("limit.")]


def members(data: Any) -> dict[str, Any]:
    return {name: data[name] for name in ("limit", "cap", "config_path")}


MEMORY = {"limit": "memory", "cap": 256 * MIB, "config_path": "limits.memory"}


async def test_near_a_limit_there_is_one_warning(adapter: LocalProcessOrchestrator) -> None:
    """Above 80 % for a while: one event, no end, and the peak is the agent's maximum."""
    agent_id = await spawned(
        adapter, "x = b'x' * (220 << 20); import time; time.sleep(1.2)", memory=256 * MIB
    )
    info = await wait_for_end(adapter, agent_id)
    assert info.exit is not None
    assert (info.exit.reason, info.exit.code) == ("exit", 0)
    ((kind, data),) = await limit_events(adapter)
    assert (kind, members(data)) == ("limit.warning", MEMORY)
    memory: Any = info.limits["memory"]
    assert 220 * MIB <= memory["peak"] <= 256 * MIB
    assert memory == {
        "cap": 256 * MIB,
        "peak": memory["peak"],
        "unit": "bytes",
        "config_path": "limits.memory",
    }


async def test_a_breach_is_in_the_record(adapter: LocalProcessOrchestrator) -> None:
    """Before the exit, with what was observed."""
    script = "import os\nfor _ in range(3): os.fork()\nx = b'x' * (100 << 20); import time; time.sleep(60)"
    agent_id = await spawned(adapter, script, memory=256 * MIB)
    info = await wait_for_end(adapter, agent_id)
    assert info.exit is not None
    assert info.exit.reason == "limit"
    kind, data = (await limit_events(adapter))[-1]
    assert (kind, members(data)) == ("limit.breached", MEMORY)
    assert data["observed"] > 256 * MIB


async def test_the_wall_warns_and_ends(adapter: LocalProcessOrchestrator) -> None:
    """At 80 % of the time one event, at the end another."""
    agent_id = await spawned(adapter, "import time; time.sleep(60)", wall_seconds=0.5)
    info = await wait_for_end(adapter, agent_id)
    assert info.exit is not None
    assert info.exit.reason == "timeout"
    wall = {"limit": "agent_wall_seconds", "cap": 0.5, "config_path": "limits.agent_wall_seconds"}
    assert [(kind, members(data)) for kind, data in await limit_events(adapter)] == [
        ("limit.warning", wall),
        ("limit.breached", wall),
    ]


async def test_each_life_has_its_wall_and_its_warning(adapter: LocalProcessOrchestrator) -> None:
    """One warning per run; the next run is far below half of its time again."""
    spec = AgentSpec(
        name="hog",
        argv=("sleep", "60"),
        profile="sandboxed",
        limits=Limits(wall_seconds=0.3),
        restart="always",
    )
    handle = await adapter.spawn(spec, request_id=uuid7())

    async def events_of_two_runs() -> list[str]:
        found = [kind for kind, _ in await limit_events(adapter)]
        return found if len(found) >= 4 else []

    async with asyncio.timeout(30):
        while not (found := await events_of_two_runs()):
            await asyncio.sleep(0.05)
    assert found[:4] == ["limit.warning", "limit.breached"] * 2
    await adapter.terminate((await adapter.get(handle.agent_id)).handle, grace_s=0)


async def test_peaks_are_seen_while_it_runs(adapter: LocalProcessOrchestrator) -> None:
    """Processes and memory, within a second or two; a limit that is not measured has no peak."""
    agent_id = await spawned(adapter, "import os, time; os.fork(); os.fork(); time.sleep(60)")
    info = await adapter.get(agent_id)

    async def wait_for_peak() -> None:
        nonlocal info
        while (info := await adapter.get(agent_id)).limits["pids"]["peak"] != 4:  # type: ignore[index,call-overload]
            await asyncio.sleep(0.05)

    async with asyncio.timeout(_PATIENCE):
        await wait_for_peak()
    limits: Any = info.limits
    assert limits["memory"]["peak"] > MIB
    assert limits["cpu"] == {"cap": 1.0, "peak": None, "unit": "cores", "config_path": "limits.cpu"}
    await adapter.terminate(info.handle, grace_s=0)
