"""What speaks to the agent API: the Python client, the command, and MCP."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.fake_authorizer import right
from support.gateway_fixture import TOKEN, GatewayFixture

from agentbox.client import AgentApiClient, AgentApiDenied, AgentApiUnreachable, AsyncAgentApiClient
from agentbox.gateway.agent_api.mcp import BY_NAME, HANDSHAKE_VERSIONS
from agentbox.gateway.connections.connection_quota import MAX_PER_AGENT


@pytest.fixture
async def agent_api(gateway: GatewayFixture) -> GatewayFixture:
    """An agent API whose agent may use every tool; there is no API behind it."""
    gateway.authorizer.set_rights("one", [right("tool", "call", "*")])
    return gateway


def url(gateway: GatewayFixture) -> str:
    return f"http://127.0.0.1:{gateway.port}"


async def test_the_client_that_waits(agent_api: GatewayFixture) -> None:
    """Calls, typed errors, a distinct error for an unreachable API, and another call after the
    connection was idle or cut."""

    def talk() -> None:
        with AgentApiClient(url(agent_api), TOKEN) as mine:
            assert mine.hello()["agent"]["id"] == "one"
            with pytest.raises(AgentApiDenied) as caught:
                mine.call("nothing")
            assert (caught.value.number, caught.value.code) == (-32601, "not-found")
            with pytest.raises(AgentApiDenied) as caught:
                mine.tool("bead/show", id="x")
            assert caught.value.number == -32000
            mine.close()
            assert mine.hello()["agent"]["name"] == "one"
        with pytest.raises(AgentApiDenied) as caught:
            AgentApiClient(url(agent_api), "wrong").hello()
        assert caught.value.code == "unauthenticated"

    await asyncio.to_thread(talk)


async def test_the_client_that_is_awaited(agent_api: GatewayFixture) -> None:
    """Thirty calls at once."""
    async with AsyncAgentApiClient(url(agent_api), TOKEN) as mine:
        output = await asyncio.gather(*(mine.hello() for _ in range(30)))
        assert {one["agent"]["id"] for one in output} == {"one"}
        with pytest.raises(AgentApiDenied):
            await mine.tool("no/tool")


def test_without_its_variables_or_without_an_agent_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is reported with a message."""
    monkeypatch.delenv("AGENTBOX_URL", raising=False)
    with pytest.raises(AgentApiUnreachable, match="AGENTBOX_URL is not set"):
        AgentApiClient()
    with pytest.raises(AgentApiUnreachable, match="cannot reach the agent API"):
        AgentApiClient("http://127.0.0.1:1", "x").hello()


async def ctl(
    agent_api: GatewayFixture, *words: str, stdin_text: str = "", token: str = TOKEN
) -> tuple[int, Any]:
    env = {"AGENTBOX_URL": url(agent_api), "AGENTBOX_TOKEN": token}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", "agentbox.client.ctl", *words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate(stdin_text.encode())
    return process.returncode or 0, json.loads(out) if out else None


async def test_the_command(agent_api: GatewayFixture) -> None:
    """JSON in, `{ok, result}` out; 1 for an error, 2 for invalid arguments."""
    code, output = await ctl(agent_api, "hello")
    assert (code, output["ok"], output["result"]["agent"]["id"]) == (0, True, "one")
    code, output = await ctl(agent_api, "tool.invoke", "-", stdin_text='{"name": "no/tool"}')
    assert (code, output["ok"], output["error"]["code"]) == (1, False, "validation")
    assert (await ctl(agent_api, "hello", token="wrong"))[1]["error"]["code"] == "unauthenticated"
    assert (await ctl(agent_api, "hello", "[1]"))[0] == 2
    assert await ctl(agent_api) == (2, None)


async def stays_open(reader: asyncio.StreamReader) -> bool:
    """Whether the other end closes it within a second."""
    try:
        await asyncio.wait_for(reader.read(), 1)
    except TimeoutError:
        return True
    except ConnectionResetError:
        return False
    return False


async def test_who_hogs_connections_loses_its_own(agent_api: GatewayFixture) -> None:
    """An agent that keeps 100, and 200 unauthenticated ones: the other agent's kept connection
    stays, and new ones are served."""
    agent_api.authorizer.add("two", "another", [])
    async with httpx.AsyncClient(
        trust_env=False, headers={"Authorization": "Bearer another"}
    ) as other:
        ask = {"jsonrpc": "2.0", "id": 1, "method": "hello"}
        assert (await other.post(f"{url(agent_api)}/rpc", json=ask)).status_code == 200
        hogs = [await asyncio.open_connection("127.0.0.1", agent_api.port) for _ in range(300)]
        for number, (_, writer) in enumerate(hogs):
            key = f"Authorization: Bearer {TOKEN}\r\n" if number < 100 else ""
            writer.write(
                f"POST /rpc HTTP/1.1\r\nHost: x\r\n{key}Content-Length: 2\r\n\r\n{{}}".encode()
            )
        assert (await other.post(f"{url(agent_api)}/rpc", json=ask)).status_code == 200
        async with httpx.AsyncClient(
            trust_env=False, headers={"Authorization": "Bearer another"}
        ) as new:
            assert (await new.post(f"{url(agent_api)}/rpc", json=ask)).status_code == 200
        assert (
            0
            < sum(await asyncio.gather(*(stays_open(reader) for reader, _ in hogs[:100])))
            <= MAX_PER_AGENT
        )
        for _, writer in hogs:
            writer.close()


class Mcp:
    """One client of `/mcp`, by hand."""

    def __init__(self, gateway: GatewayFixture, **headers: str) -> None:
        self.http = httpx.AsyncClient(
            base_url=url(gateway),
            headers={"Authorization": f"Bearer {TOKEN}", **headers},
            trust_env=False,
        )

    async def post(self, method: str, params: Any = None, **more: Any) -> httpx.Response:
        message = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": method,
            **({} if params is None else {"params": params}),
            **more,
        }
        if method.startswith("notifications/"):
            del message["id"]
        return await self.http.post("/mcp", json=message)


async def test_mcp(agent_api: GatewayFixture) -> None:
    """Initialize in a version of the client's choice, list, call, ping; an error is a result that
    says so."""
    client = Mcp(agent_api)
    for requested, expected in (
        *((version, version) for version in HANDSHAKE_VERSIONS),
        ("1999-01-01", HANDSHAKE_VERSIONS[0]),
    ):
        output = (
            await client.post(
                "initialize",
                {
                    "protocolVersion": requested,
                    "capabilities": {},
                    "clientInfo": {"name": "x", "version": "1"},
                },
            )
        ).json()
        assert output["result"]["protocolVersion"] == expected
        assert set(output["result"]["capabilities"]) == {"tools", "resources", "extensions"}
    assert (await client.post("notifications/initialized")).status_code == 202
    assert (await client.post("ping")).json()["result"] == {}
    tools = (await client.post("tools/list")).json()["result"]["tools"]
    assert {tool["name"] for tool in tools} < set(BY_NAME)
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)
    assert not any(tool["name"].startswith("agent_") for tool in tools)
    denied = (await client.post("tools/call", {"name": "bead_show", "arguments": {}})).json()[
        "result"
    ]
    assert (denied["isError"], "requires the argument id" in denied["content"][0]["text"]) == (
        True,
        True,
    )
    assert (await client.post("tools/call", {"name": "nothing"})).json()["error"]["code"] == -32602
    assert (await client.post("prompts/list")).json()["error"]["code"] == -32601
    await client.http.aclose()


async def test_mcp_keeps_browsers_and_strangers_out(agent_api: GatewayFixture) -> None:
    """A page's origin is 403, no token 401, an unknown version 400, a stream 405, a body over the limit 413."""
    assert (await Mcp(agent_api, Origin="https://evil.example").post("ping")).status_code == 403
    assert (await Mcp(agent_api, Origin="http://[").post("ping")).status_code == 403
    assert (await Mcp(agent_api, Origin="http://localhost:3000").post("ping")).status_code == 200
    assert (await Mcp(agent_api, Authorization="Bearer no").post("ping")).status_code == 401
    odd = Mcp(agent_api)
    assert (
        await odd.http.post("/mcp", json={}, headers={"MCP-Protocol-Version": "1"})
    ).status_code == 400
    assert (await odd.http.get("/mcp")).status_code == 405
    assert (await odd.http.post("/mcp", content=b" " * (2 << 20))).status_code == 413


def test_the_command_is_in_the_image() -> None:
    """An entry point of the package, and a name on the path of agents."""
    checkout = Path(__file__).parents[3]
    assert 'agentbox-ctl = "agentbox.client.ctl:main"' in (checkout / "pyproject.toml").read_text()
    assert (
        '["/usr/bin/agentbox-ctl", "/opt/agentbox/venv/bin/agentbox-ctl"]'
        in (checkout / "config/features/core.toml").read_text()
    )
