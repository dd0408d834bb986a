"""Bounds of servers, with real ones: one that reaches a bound does not affect another."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.mcp_box import McpBox
from support.mcp_servers import CALCULATOR, HOSTILE

MANIFEST = f"""
[agents.user]
command = ["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']
mcp = ["calc", "hostile"]
[mcp.servers.calc]
command = ["/usr/bin/python3", "-c", '''{CALCULATOR}''']
pin = "first-use"
instance = "shared"
[mcp.servers.hostile]
command = ["/usr/bin/python3", "-c", '''{HOSTILE}''']
pin = "first-use"
call_seconds = 1
"""


@pytest.fixture(scope="module")
def box() -> Iterator[McpBox]:
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    with McpBox(folder, MANIFEST) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def token(box: McpBox) -> str:
    return box.token("user")


@pytest.mark.limit("mcp_tools")
def test_an_agent_is_offered_that_many_tools(box: McpBox, token: str) -> None:
    """The first ones, in the order of server and name."""
    everything = box.tool_names(token)
    assert len(everything) > 3
    before = box.plan
    box.apply(replace(before, mcp=replace(before.mcp, max_tools=3)))
    assert box.tool_names(token) == everything[:3]
    box.apply(before)


@pytest.mark.limit("mcp_call_seconds")
def test_a_call_has_its_time(box: McpBox, token: str) -> None:
    """The other server answers meanwhile and afterwards."""
    result = box.call(token, "hostile__silent")
    assert "within 1 s" in result["content"][0]["text"]
    assert box.call(token, "calc__add", a=1, b=1)["structuredContent"] == {"sum": 2}


@pytest.mark.limit("mcp_servers")
def test_that_many_servers_run(box: McpBox, token: str) -> None:
    """A further one is not started; the one that runs answers."""
    box.client.mcp.restart_server("hostile")
    box.client.mcp.restart_server("calc")
    before = box.plan
    box.apply(replace(before, mcp=replace(before.mcp, max_servers=1)))
    assert not box.call(token, "calc__add", a=1, b=1)["isError"]
    refused = box.call(token, "hostile__bead_claim")
    assert refused["structuredContent"]["error"]["data"]["code"] == "mcp-unavailable"
    assert "mcp.max_servers is 1" in box.client.mcp.show_server("hostile").detail
    assert not box.call(token, "calc__add", a=1, b=1)["isError"]
    box.apply(before)
    assert not box.call(token, "hostile__bead_claim")["isError"]
