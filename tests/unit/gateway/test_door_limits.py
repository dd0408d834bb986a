"""A call that takes too long is an error for who made it, and nothing for the others."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from agentbox.testing.api_box import ApiBox
from agentbox.testing.door_agent import ALL, ONE, TWO, Agent
from agentbox.testing.gateway_room import Room

ASK = {"title": "work"}


@contextmanager
def stopped(api: ApiBox) -> Iterator[None]:
    """The API answers nobody."""
    assert api.process is not None
    os.kill(api.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(api.process.pid, signal.SIGCONT)


async def test_a_tool_has_its_time(door: Room, api: ApiBox, one: Agent, two: Agent) -> None:
    """limits.tool_timeout_seconds, named in the error. Another agent's call goes on in its own time, and is answered."""
    door.authority.add(ONE, "t1", ALL, name="one", limits={"tool_timeout_seconds": 0.2})
    door.authority.add(TWO, "t2", ALL, name="two", limits={"tool_timeout_seconds": 60})
    with stopped(api):
        patient = asyncio.create_task(two.call("bead.create", **ASK))
        error = (await one.ask("bead.create", **ASK))["error"]["data"]
        assert error == {
            "code": "tool-timeout", "limit": "tool_timeout_seconds", "cap": 0.2, "config_path": "limits.tool_timeout_seconds",
        }  # fmt: skip
        assert (await two.call("hello"))["agent"]["id"] == TWO
        assert not patient.done()
    assert (await patient)["title"] == "work"
    door.authority.add(ONE, "t1", ALL, name="one")
    assert (await one.call("bead.create", **ASK))["title"] == "work"
