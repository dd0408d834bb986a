"""A call that takes too long is an error for its caller, and does not affect others."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.agent_api_caller import (
    ALL_TOOLS,
    FIRST_AGENT_ID,
    SECOND_AGENT_ID,
    AgentApiCaller,
)
from support.api_box import ApiBox
from support.gateway_fixture import GatewayFixture

ASK = {"title": "work"}


@contextmanager
def stopped(api: ApiBox) -> Iterator[None]:
    """The API never answers."""
    assert api.process is not None
    os.kill(api.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(api.process.pid, signal.SIGCONT)


@pytest.mark.limit("tool_timeout_seconds")
async def test_a_tool_has_its_time(
    agent_api: GatewayFixture,
    api: ApiBox,
    first_agent: AgentApiCaller,
    second_agent: AgentApiCaller,
) -> None:
    """limits.tool_timeout_seconds, named in the error. Another agent's call takes its own time, and
    is answered."""
    agent_api.authorizer.add(
        FIRST_AGENT_ID, "t1", ALL_TOOLS, name="one", limits={"tool_timeout_seconds": 0.2}
    )
    agent_api.authorizer.add(
        SECOND_AGENT_ID, "t2", ALL_TOOLS, name="two", limits={"tool_timeout_seconds": 60}
    )
    with stopped(api):
        patient = asyncio.create_task(second_agent.call("bead.create", **ASK))
        error = (await first_agent.request("bead.create", **ASK))["error"]["data"]
        assert error == {
            "code": "tool-timeout", "limit": "tool_timeout_seconds", "cap": 0.2, "config_path": "limits.tool_timeout_seconds",
        }  # fmt: skip
        assert (await second_agent.call("hello"))["agent"]["id"] == SECOND_AGENT_ID
        assert not patient.done()
    assert (await patient)["title"] == "work"
    agent_api.authorizer.add(FIRST_AGENT_ID, "t1", ALL_TOOLS, name="one")
    assert (await first_agent.call("bead.create", **ASK))["title"] == "work"
