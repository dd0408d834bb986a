"""An agent's end is reported once, whatever happens to its host."""

import asyncio
from pathlib import Path

import apsw
from support.agent_host import AgentHostBox
from support.host_agents import open_orchestrator
from support.host_configs import host_config

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.contracts.orchestrator import AgentHandle, AgentSpec, ExitRecord
from agentbox.core.ids import uuid7


async def test_an_end_that_was_told_is_its_end_after_a_crash(tmp_path: Path) -> None:
    """The host dies after callers saw the exit and before agents.db has it."""
    box = AgentHostBox(tmp_path)
    box.start()
    spec = AgentSpec(
        name="brief", argv=("sh", "-c", "read line; exit 7"), profile="sandboxed", stdin="pipe"
    )
    async with open_orchestrator(box) as adapter:
        handle = await adapter.spawn(spec, request_id=uuid7())
        pipes = await adapter.attach(handle)
        writer = apsw.Connection(str(host_config(box.paths).state_dir / "agents.db"))
        writer.execute("BEGIN IMMEDIATE")  # nothing is stored from now on
        await pipes.send(b"go\n")
        seen = await end_of(adapter, handle)
        box.kill()
        writer.close()
    box.start()
    async with open_orchestrator(box) as adapter:
        assert await end_of(adapter, handle) == seen
        record = await agent_host_client(lambda: adapter).read_record(0, wait_s=5)
        assert [one.data["exit"]["code"] for one in record if one.type == "agent.exited"] == [7]
    box.stop()


async def end_of(adapter: LocalProcessOrchestrator, handle: AgentHandle) -> ExitRecord:
    """As callers see it, at once when they do."""
    async with asyncio.timeout(20):
        while (found := (await adapter.get(handle.agent_id)).exit) is None:
            await asyncio.sleep(0.01)
    return found
