"""Limits of the complete host and of a run: what is refused or ended, while the agent beside it
continues."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.wait import wait_until
from skipping import machine_lacks
from support.agent_host import AgentHostBox
from support.hogs import EchoAgent
from support.host_agents import open_orchestrator

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import QuotaExceeded
from agentbox.policy.limits.reserve import MIN_TASKS, TASKS_PER_AGENT


@pytest.fixture
async def adapter(tmp_path: Path) -> AsyncIterator[LocalProcessOrchestrator]:
    """At most four agents at once, and children only."""
    box = AgentHostBox(tmp_path, options={"max_agents": 4, "max_depth": 1})
    box.start()
    async with open_orchestrator(box) as made:
        yield made
    box.stop()


def sleeper(**more: Any) -> AgentSpec:
    return AgentSpec(name="sleeper", argv=("sleep", "1000"), profile="sandboxed", **more)


async def refused(adapter: LocalProcessOrchestrator, **more: Any) -> str:
    with pytest.raises(QuotaExceeded) as caught:
        await adapter.spawn(sleeper(**more), request_id=uuid7())
    return str(caught.value.members["config_path"])


async def keeps_answering(neighbour: EchoAgent) -> None:
    """It is answered anew."""
    before = len(neighbour.samples)
    await wait_until(
        lambda: len(neighbour.samples) >= before + 5, "the neighbour is answered", seconds=20
    )


@pytest.mark.limit("max_agents")
@pytest.mark.limit("max_depth")
async def test_number_and_depth_are_refused_at_the_spawn(adapter: LocalProcessOrchestrator) -> None:
    """A grandchild, and one more than allowed; running agents stay, with their parent and depth."""
    async with EchoAgent(adapter) as neighbour:
        parent = await adapter.spawn(sleeper(), request_id=uuid7())
        child = await adapter.spawn(sleeper(parent_id=parent.agent_id), request_id=uuid7())
        assert await refused(adapter, parent_id=child.agent_id) == "adapters.orchestrator.max_depth"
        await adapter.spawn(sleeper(), request_id=uuid7())
        assert await refused(adapter) == "adapters.orchestrator.max_agents"
        await keeps_answering(neighbour)
        assert {(await adapter.get(one.agent_id)).state for one in (parent, child)} == {"running"}


async def test_a_start_beyond_what_the_box_can_spare_is_refused_by_name(tmp_path: Path) -> None:
    """Each living agent has four processes for certain, and the box its reserve: 2 agents in a box of 136, though 100 may live."""
    box = AgentHostBox(tmp_path, pids=MIN_TASKS + 2 * TASKS_PER_AGENT)
    box.start()
    async with open_orchestrator(box) as adapter:
        first = await adapter.spawn(sleeper(), request_id=uuid7())
        await adapter.spawn(sleeper(), request_id=uuid7())
        assert await refused(adapter) == "resources.pids"
        await adapter.terminate(first, grace_s=0)
        await adapter.spawn(sleeper(), request_id=uuid7())
    box.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MiB."""
    if os.geteuid():
        machine_lacks("root, which a mount needs")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


async def test_no_agent_starts_in_the_reserve_of_the_disk(small_disk: Path) -> None:
    """Below a quarter of a small disk; running agents continue, and with space the next one starts."""
    box = AgentHostBox(small_disk)
    box.start()
    async with open_orchestrator(box) as adapter:
        first = await adapter.spawn(sleeper(), request_id=uuid7())
        (small_disk / "fill").write_bytes(bytes(56 << 20))
        with pytest.raises(QuotaExceeded, match="16 MiB are reserved") as caught:
            await adapter.spawn(sleeper(), request_id=uuid7())
        assert caught.value.members["limit"] == "free_reserve"
        assert (await adapter.get(first.agent_id)).state == "running"
        (small_disk / "fill").unlink()
        await adapter.spawn(sleeper(), request_id=uuid7())
    box.stop()


@pytest.mark.limit("run_wall_seconds")
async def test_a_run_ends_at_its_time(adapter: LocalProcessOrchestrator) -> None:
    """All its processes, and no others."""
    async with EchoAgent(adapter) as neighbour, asyncio.timeout(30):
        spec = AgentSpec(
            name="run", argv=("sh", "-c", "sleep 1000 & echo up; wait"), profile="sandboxed"
        )
        done = await adapter.run_once(spec, request_id=uuid7(), timeout_s=1)
        assert (done.exit.reason, done.stdout) == ("timeout", b"up\n")
        lines = await agent_host_client(lambda: adapter).read_record(0, wait_s=5)
        found = [
            (line.type, line.data["config_path"])
            for line in lines
            if line.type.startswith("limit.")
        ]
        assert found == [
            ("limit.warning", "limits.run_wall_seconds"),
            ("limit.breached", "limits.run_wall_seconds"),
        ]
        await keeps_answering(neighbour)
