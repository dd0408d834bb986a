"""Secrets with an end, a count or a rate, on a real agent-host and at the agent API of a real gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from agentbox_testkit.wait import wait_until
from support.agent_api_caller import AgentApiCaller
from support.agent_host import AgentHostBox
from support.host_agents import (
    PRINT_TOKEN,
    follow_authorizations,
    open_orchestrator,
    spawn,
    token_of,
)
from support.ports import free_port

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.box.supervision.boot_record import load_plan
from agentbox.contracts.orchestrator import AgentHandle, Constraint
from agentbox.core.slot_errors import ValidationError
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.server import GatewayServer

MANIFEST = f"""
[agents.lead]
command = ["sh", "-c", '{PRINT_TOKEN}']
children = ["reader"]
secrets = ["LAB_SECRET", "OTHER"]
env = ["HOME_TOWN"]
[agents.reader]
command = ["sh", "-c", '{PRINT_TOKEN}']
secrets = ["LAB_SECRET"]
"""


class BoxPrograms:
    """A box's agent-host and gateway."""

    def __init__(self, box: AgentHostBox, adapter: LocalProcessOrchestrator, port: int) -> None:
        self.box, self.adapter, self.port = box, adapter, port

    async def agent_api_of(self, handle: AgentHandle) -> AgentApiCaller:
        """As that agent."""
        return AgentApiCaller(SimpleNamespace(port=self.port), await token_of(self.adapter, handle))

    def file(self, handle: AgentHandle, name: str = "LAB_SECRET") -> Path:
        return self.box.paths.branches / handle.agent_id / "tmp/secrets" / name


@pytest.fixture
def box(tmp_path: Path) -> AgentHostBox:
    found = AgentHostBox(tmp_path, manifest=MANIFEST, scale=50)
    found.paths.moved_secrets.mkdir(mode=0o700)
    for name in ("LAB_SECRET", "OTHER"):
        (found.paths.moved_secrets / name).write_text("hush")
    return found


@asynccontextmanager
async def running_programs(box: AgentHostBox) -> AsyncIterator[BoxPrograms]:
    box.start()
    try:
        async with open_orchestrator(box) as adapter, follow_authorizations(box) as authority:
            config = GatewayConfig(
                paths=box.paths, plan=load_plan(box.paths.plan), port=free_port()
            )
            config.state_dir.mkdir(parents=True, exist_ok=True)
            server = GatewayServer(config, authority)
            await server.open()
            yield BoxPrograms(box, adapter, config.port)
            await server.close()
    finally:
        box.stop()


async def test_a_count_holds_for_the_family_and_across_restarts(box: AgentHostBox) -> None:
    """Two uses are two for an agent and its children; neither has a file, and a killed agent-host
    restores none."""
    bound = Constraint(scope="env", pattern="LAB_SECRET", uses=2)
    async with running_programs(box) as here:
        lead = await spawn(here.adapter, "lead", constraints=(bound,))
        child = await spawn(here.adapter, "reader", parent_id=lead.agent_id)
        agent_apis = [await here.agent_api_of(one) for one in (lead, child)]
        assert [
            (await agent_api.call("secret.get", name="LAB_SECRET"))["value"]
            for agent_api in agent_apis
        ] == [
            "hush",
            "hush",
        ]
        assert [
            await agent_api.error_code("secret.get", name="LAB_SECRET") for agent_api in agent_apis
        ] == ["permission-denied"] * 2
        assert [
            here.file(lead).exists(),
            here.file(child).exists(),
            here.file(lead, "OTHER").exists(),
        ] == [
            False,
            False,
            True,
        ]
        for _ in range(3):
            assert await agent_apis[0].call("secret.get", name="OTHER")
        rows = (await here.adapter.get(lead.agent_id)).policy["secrets"]
        assert [(row["uses"], row["used"]) for row in rows if "uses" in row] == [(2, 2)]
        box.kill()
    async with running_programs(box) as here:
        rows = (await here.adapter.get(lead.agent_id)).policy["secrets"]
        assert [(row["uses"], row["used"]) for row in rows if "uses" in row] == [(2, 2)]


async def test_a_rate_and_an_end(box: AgentHostBox) -> None:
    """One a minute; and after its end no file and no value."""
    slow = Constraint(scope="env", pattern="LAB_SECRET", rate=1)
    brief = Constraint(scope="env", pattern="OTHER", expires_s=3)
    async with running_programs(box) as here:
        lead = await spawn(here.adapter, "lead", constraints=(slow, brief))
        agent_api = await here.agent_api_of(lead)
        assert (await agent_api.call("secret.get", name="LAB_SECRET"))["value"] == "hush"
        assert (
            "uses a minute"
            in (await agent_api.request("secret.get", name="LAB_SECRET"))["error"]["message"]
        )
        await wait_until(
            lambda: not here.file(lead, "OTHER").exists(), "its time has come", seconds=30
        )
        assert await agent_api.error_code("secret.get", name="OTHER") == "permission-denied"


async def test_a_variable_takes_no_count(box: AgentHostBox) -> None:
    """What the kernel gave at the start was had once and for all."""
    async with running_programs(box) as here:
        with pytest.raises(ValidationError):
            await spawn(here.adapter, "lead", constraints=(Constraint(scope="env", uses=1),))
        with pytest.raises(ValidationError):
            await spawn(
                here.adapter,
                "lead",
                constraints=(Constraint(scope="env", pattern="NO_SUCH", uses=1),),
            )
