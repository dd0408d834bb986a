"""MCP servers for agents: real programs in sandboxes, called through the gateway, honest and hostile."""

import asyncio
import json
import signal
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import until
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from support.mcp_box import McpBox
from support.mcp_servers import CALCULATOR, HOSTILE, OFFICIAL, RUG_PULL

from agentbox.client import AgentApiClient
from agentbox.core.canonical import canonical_json, digest

PURELIB = sysconfig.get_path("purelib")
PRINTS_TOKEN = """["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']"""
MANIFEST = f"""
[agents.user]
command = {PRINTS_TOKEN}
max_instances = 4
mcp = ["calc", "shared"]
[agents.other]
command = {PRINTS_TOKEN}
[agents.victim]
command = {PRINTS_TOKEN}
mcp = ["hostile", "rug"]
[agents.denied]
command = {PRINTS_TOKEN}
mcp = ["calc"]
profile = "narrow"
[policies.narrow]
base = "sandboxed"
tool = [{{ mode = "deny", patterns = ["mcp/calc/fail"] }}]
[mcp.servers.calc]
command = ["/usr/bin/python3", "-c", '''{CALCULATOR}''']
secrets = ["CALC_KEY"]
tools = ["add", "where", "fail", "lie"]
[mcp.servers.shared]
command = ["/usr/bin/python3", "-c", '''{CALCULATOR}''']
instance = "shared"
tools = ["where"]
pin = "first-use"
[mcp.servers.rug]
command = ["/usr/bin/python3", "-c", '''{RUG_PULL}''']
[agents.asking]
command = {PRINTS_TOKEN}
mcp = ["calc"]
approval_required = ["tool:mcp/calc/add"]
[agents.modern]
command = {PRINTS_TOKEN}
mcp = ["official"]
[policies.sdk]
base = "service"
fs = [{{ mode = "allow", operations = ["read"], patterns = ["{PURELIB}/**", "{sys.base_prefix}/**"] }}]
[mcp.servers.official]
command = ["{Path(sys.executable).resolve()}", "-I", "-c", '''{OFFICIAL.format(paths=[PURELIB])}''']
profile = "sdk"
instance = "shared"
[mcp.servers.hostile]
command = ["/usr/bin/python3", "-c", '''{HOSTILE}''']
call_seconds = 3
max_result = "64KiB"
"""


@pytest.fixture(scope="module")
def mcp(prefix: Path) -> Iterator[McpBox]:
    with McpBox(prefix, MANIFEST, {"CALC_KEY": "s3cret"}) as box:
        yield box


@pytest.fixture(scope="module")
def pinned(mcp: McpBox) -> McpBox:
    mcp.pin("calc", "rug", "hostile")
    return mcp


@pytest.fixture(scope="module")
def user(mcp: McpBox) -> str:
    return mcp.token("user")


@pytest.fixture(scope="module")
def victim(mcp: McpBox) -> str:
    return mcp.token("victim")


def said(result: Any) -> str:
    """The text of a result."""
    return str(result["content"][0]["text"])


def refusal(result: Any) -> str:
    """The code of an error of the box."""
    assert result["isError"]
    return str(result["structuredContent"]["error"]["data"]["code"])


def test_nothing_is_offered_before_it_is_pinned(mcp: McpBox, user: str) -> None:
    """A tool without a pin is neither shown nor called; first use pins that of the other server."""
    assert mcp.tool_names(user) == ["shared__where"]
    assert refusal(mcp.call(user, "calc__add", a=1, b=2)) == "mcp-drift"
    states = {tool.name: tool.state for tool in mcp.client.mcp.show_server("calc").tools}
    assert set(states.values()) == {"unpinned"}


def test_a_pinned_tool_is_offered_and_called(pinned: McpBox, user: str) -> None:
    """As `<server>__<tool>` among all tools, and by its own name at the address of the server; the result is the
    server's own, errors of the tool included."""
    with AgentApiClient(f"http://127.0.0.1:{pinned.port}", user) as agent_api:
        assert agent_api.hello()["mcp"] == ["calc", "shared"]
    names = [f"calc__{name}" for name in ("add", "fail", "lie", "where")]
    assert pinned.tool_names(user) == [*names, "shared__where"]
    result = pinned.call(user, "calc__add", a=1, b=2)
    assert result == {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}, "isError": False}  # fmt: skip
    own = pinned.post(user, "tools/list", "/mcp/calc")["tools"]
    assert [tool["name"] for tool in own] == ["add", "fail", "lie", "where"]
    assert own[0]["description"] == "Adds two numbers."
    called = pinned.post(user, "tools/call", "/mcp/calc", name="add", arguments={"a": 2, "b": 2})
    assert said(called) == "4"
    assert pinned.call(user, "calc__fail")["isError"]


def test_other_agents_have_no_server(pinned: McpBox) -> None:
    """Neither its tools, nor its address, nor a call; the `*` of their profile covers tools of the box only."""
    token = pinned.token("other")
    assert pinned.tool_names(token) == []
    assert pinned.call(token, "calc__add", a=1, b=2)["data"]["code"] == "not-found"
    assert "not offered" in pinned.post(token, "tools/list", "/mcp/calc")["message"]


def test_a_denial_of_a_policy_narrows_it(pinned: McpBox) -> None:
    """The tool is not shown, and a call is refused and counted."""
    token = pinned.token("denied")
    assert "calc__fail" not in pinned.tool_names(token)
    assert refusal(pinned.call(token, "calc__fail")) == "permission-denied"
    assert said(pinned.call(token, "calc__add", a=1, b=1)) == "2"


def test_a_call_may_need_an_approval(pinned: McpBox) -> None:
    """As every tool: without an approver it is refused, other tools of the server are not."""
    token = pinned.token("asking")
    result = pinned.call(token, "calc__add", a=1, b=1)
    assert result["structuredContent"]["error"]["data"]["rule"] == "approval tool"
    assert pinned.call(token, "calc__fail")["content"][0]["text"] == "it did not work"


def test_a_server_is_confined_and_has_its_secret(pinned: McpBox, user: str) -> None:
    """It sees no workspace; its secret is a file of its own. An agent has its own instance of it, unless it is shared."""
    (pinned.paths.workspace / "README").write_text("x")
    seen = json.loads(said(pinned.call(user, "calc__where")))
    assert seen["secret"].strip() == "s3cret"
    assert seen["workspace"] != ["README"]
    second = pinned.token("user")
    again = json.loads(said(pinned.call(second, "calc__where")))
    assert again["pid"] != seen["pid"]
    shared = {said(pinned.call(token, "shared__where")) for token in (user, second)}
    assert len(shared) == 1


def test_a_server_of_the_official_sdk(mcp: McpBox) -> None:
    """It speaks the newest revision, and its agent reaches it over stdio too, by `agentbox-mcp`, with the official
    client."""
    mcp.pin("official")
    assert mcp.client.mcp.show_server("official").protocol == "2026-07-28"
    token = mcp.token("modern")
    assert mcp.call(token, "official__multiply", a=6, b=7)["structuredContent"] == {"result": 42}
    listed, called = asyncio.run(over_stdio(mcp, token, "official"))
    assert listed == ["multiply"]
    assert called == {"result": 30}


async def over_stdio(box: McpBox, token: str, server: str) -> tuple[list[str], Any]:
    """The tools of a server and the result of one, over the shim."""
    shim = StdioServerParameters(
        command=sys.executable,
        args=["-m", "agentbox.client.mcp_stdio", server],
        env={"AGENTBOX_URL": f"http://127.0.0.1:{box.port}", "AGENTBOX_TOKEN": token},
    )
    async with Client(stdio_client(shim)) as client:
        tools = await client.list_tools()
        result = await client.call_tool("multiply", {"a": 5, "b": 6})
    return [tool.name for tool in tools.tools], result.structured_content


def test_structured_content_is_what_the_schema_says(pinned: McpBox, user: str) -> None:
    """Otherwise the agent gets an error instead."""
    assert refusal(pinned.call(user, "calc__lie")) == "mcp-result"


def test_a_changed_definition_is_withheld(pinned: McpBox, victim: str) -> None:
    """A server that changes a description after it was pinned: the agent is never shown the new text, the next call is
    refused, and the journal has it."""
    shown = pinned.post(victim, "tools/list", "/mcp/rug")["tools"]
    assert [tool["description"] for tool in shown] == ["Reads a file."]
    assert said(pinned.call(victim, "rug__read")) == "done"
    until(lambda: pinned.call(victim, "rug__read").get("isError"), 10)
    assert refusal(pinned.call(victim, "rug__read")) == "mcp-drift"
    assert pinned.post(victim, "tools/list", "/mcp/rug")["tools"] == []
    row = next(tool for tool in pinned.client.mcp.show_server("rug").tools)
    assert (row.state, row.pinned_definition["description"]) == ("drift", "Reads a file.")
    told = until(lambda: pinned.events("mcp.drift"), 10)
    assert told[0]["data"]["server"] == "rug"
    assert told[0]["data"]["pinned"] == row.pinned
    assert until(lambda: 'agentbox_mcp_drift{server="rug"} 1.0' in pinned.metrics(), 10)


def test_what_cannot_be_offered_is_not(pinned: McpBox, victim: str) -> None:
    """A bad name, a long description and a schema elsewhere; a name like a tool of the box is another tool."""
    tools = {tool.name: tool for tool in pinned.client.mcp.show_server("hostile").tools}
    assert {name for name, tool in tools.items() if tool.state == "invalid"} == {"a/b", "long", "remote"}  # fmt: skip
    names = [tool["name"] for tool in pinned.post(victim, "tools/list")["tools"]]
    assert names.count("bead_claim") == 1
    assert "hostile__bead_claim" in names
    assert said(pinned.call(victim, "hostile__bead_claim")) == "called"


@pytest.mark.parametrize(
    ("tool", "code"),
    [("silent", "mcp-timeout"), ("large", "mcp-result"), ("endless", "mcp-unavailable"), ("flood", "mcp-unavailable mcp-timeout"), ("leave", "mcp-unavailable")],
)  # fmt: skip
def test_a_hostile_server_costs_one_call(pinned: McpBox, victim: str, tool: str, code: str) -> None:
    """It never answers, answers too much, writes without end, or ends: an error, and the next call is served. The agent
    learns nothing of the program."""
    result = pinned.call(victim, f"hostile__{tool}")
    assert refusal(result) in code.split()  # a flood is noticed, or the time is up before
    assert "secret command" not in json.dumps(result)
    assert said(pinned.call(victim, "hostile__bead_claim")) == "called"


def test_a_server_may_not_ask(pinned: McpBox, victim: str) -> None:
    """Elicitation, sampling and roots are refused."""
    answers = json.loads(said(pinned.call(victim, "hostile__ask")))
    assert answers == {"ask-1": True, "ask-2": True, "ask-3": True}


def test_calls_are_in_the_journal(pinned: McpBox, user: str) -> None:
    """With digests and milliseconds, not with arguments and results."""
    arguments = {"a": 4040, "b": 2}
    expected = digest(canonical_json(arguments))
    pinned.call(user, "calc__add", **arguments)

    def told() -> Any:
        found = pinned.events("mcp.called")
        return next((one for one in found if one["data"]["arguments"] == expected), None)

    event = until(told, 10)
    data = event["data"]
    assert (data["server"], data["tool"], data["outcome"]) == ("calc", "add", "ok")
    assert data["result"].startswith("sha256:")
    assert data["ms"] >= 0
    assert event["agent_id"]
    assert "4040" not in json.dumps(event)


def test_the_server_ends_with_its_agent(pinned: McpBox) -> None:
    """The instance of an agent that has ended is ended at once, not when it would be idle."""
    token = pinned.token("user")
    pinned.call(token, "calc__add", a=1, b=1)
    owner = pinned.client.agents.list(name="user").items[-1]
    running = pinned.client.mcp.show_server("calc").instances
    pinned.client.agents.terminate(owner.handle.agent_id, owner.handle.generation)
    until(lambda: pinned.client.mcp.show_server("calc").instances == running - 1, 20)


def test_a_killed_mcp_host_leaves_nothing(pinned: McpBox, user: str) -> None:
    """Its servers' sandboxes end when it is back, and calls are served again; pins of first use and known texts stay."""
    pinned.call(user, "shared__where")
    before = {box.sandbox_id for box in sandboxes(pinned)}
    assert before
    assert pinned.host.process is not None
    pinned.host.process.send_signal(signal.SIGKILL)
    pinned.host.process.wait()
    assert refusal(pinned.call(user, "shared__where")) == "mcp-unavailable"
    pinned.host.start()
    assert not before & {box.sandbox_id for box in sandboxes(pinned)}
    assert json.loads(said(until(lambda: answer(pinned, user), 20)))["pid"]


def answer(box: McpBox, token: str) -> Any:
    """The result of a call; None while it fails."""
    result = box.call(token, "shared__where")
    return None if result.get("isError") else result


def sandboxes(box: McpBox) -> list[Any]:
    """The running sandboxes of servers."""
    found = box.client.sandboxes.list().items
    return [row for row in found if row.exit is None and "agentbox.mcp" in row.labels]
