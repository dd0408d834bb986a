"""Messages of JSON-RPC at the agent API: malformed, too large, too many, and over a WebSocket."""

import asyncio
import json
import time
from typing import Any

import pytest
from support.agent_api_caller import (
    ALL_TOOLS,
    FIRST_AGENT_ID,
    SECOND_AGENT_ID,
    AgentApiCaller,
)
from support.gateway_fixture import GatewayFixture
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from agentbox.gateway.agent_api.tools import AGENT_TOOLS, TOOLS, Tool

MALFORMED: list[tuple[bytes, int]] = [
    (b"", -32700), (b"{", -32700), (b"\xff\xfe", -32700), (b"[1e999, NaN]", -32700), (b"[" * 100_000, -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": ' + b"[" * 700 + b"]" * 700 + b"}", -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": ["\\ud800"]}', -32700),
    (b"1", -32600), (b"[]", -32600), (b"null", -32600), (b'{"method":"hello","id":1}', -32600),
    (b'{"jsonrpc":"2.0","method":1,"id":1}', -32600), (b'{"jsonrpc":"2.0","method":"hello","id":{}}', -32600),
    (b'{"jsonrpc":"2.0","method":"hello","id":1e400}', -32600), (b'{"jsonrpc":"2.0","method":"hello","id":-1e400}', -32600),
    (b'{"jsonrpc":"2.0","method":"nothing","id":1}', -32601), (b'{"jsonrpc":"2.0","method":"hello","params":[1],"id":1}', -32602),
    (b'{"jsonrpc":"2.0","method":"hello","params":{"a":1},"id":1}', -32602),
    (b'{"jsonrpc":"2.0","method":"bead.show","params":{"id":5},"id":1}', -32602),
    (b'{"jsonrpc":"2.0","method":"bead.show","id":1}', -32602), (json.dumps([{}] * 101).encode(), -32600),
]  # fmt: skip


@pytest.mark.parametrize(("message", "number"), MALFORMED)
async def test_malformed_messages_get_errors_of_json_rpc(
    first_agent: AgentApiCaller, message: bytes, number: int
) -> None:
    """200 with an error; the connection and the box continue."""
    response = await first_agent.post(message)
    assert (response.status_code, response.json()["error"]["code"]) == (200, number)
    assert (await first_agent.call("hello"))["agent"]["id"] == FIRST_AGENT_ID


async def test_no_argument_is_a_fault_of_the_box(first_agent: AgentApiCaller) -> None:
    """Values too long for a path, lone surrogates, or out of bounds are reported as the agent's
    error."""
    odd = ("x" * 70_000, "\ud800", 10**400)
    calls = [
        (tool, name, value)
        for tool in (*TOOLS, *AGENT_TOOLS)
        for name in tool.arguments
        for value in odd
    ]

    async def code(tool: Tool, name: str, value: object) -> Any:
        given = {
            other: 1 if "integer" in str(tool.arguments[other]) else "x"
            for other in tool.schema["required"]
        }
        return (
            (await first_agent.request(tool.method, **{**given, name: value}))
            .get("error", {})
            .get("code")
        )

    for at in range(0, len(calls), 16):
        some = calls[at : at + 16]
        codes = await asyncio.gather(*(code(*call) for call in some))
        assert -32603 not in codes, [(call[0].name, call[1]) for call in some]


async def test_a_batch_is_worked_off_in_order_and_a_notification_is_not_answered(
    first_agent: AgentApiCaller,
) -> None:
    """Ids are returned unchanged; an id of null is no notification."""
    calls = [{"jsonrpc": "2.0", "id": number, "method": "hello"} for number in ("a", 2, None, 1.5)]
    output = await first_agent.post([*calls, {"jsonrpc": "2.0", "method": "hello"}, 7])
    assert [answer["id"] for answer in output.json()] == ["a", 2, None, 1.5, None]
    assert (await first_agent.post({"jsonrpc": "2.0", "method": "hello"})).status_code == 204
    assert (await first_agent.http.get("/rpc")).status_code == 405


@pytest.mark.limit("frame")
async def test_a_message_has_its_most(
    agent_api: GatewayFixture, first_agent: AgentApiCaller
) -> None:
    """413 at limits.frame, sent before all of it was read."""
    agent_api.authorizer.add("small", "t4", ALL_TOOLS, limits={"frame": 1000})
    agent = AgentApiCaller(agent_api, "t4")
    await first_agent.call("pod.write", path="x", content="y" * 2000)
    agent_api.authorizer.add(FIRST_AGENT_ID, "t1", ALL_TOOLS, name="one", limits={"frame": 1000})
    assert await first_agent.error_code("pod.read", path="x") == "value-too-large"
    agent_api.authorizer.add(FIRST_AGENT_ID, "t1", ALL_TOOLS, name="one")
    output = await agent.post(b" " * 2000)
    assert (output.status_code, output.json()["error"]["data"]["config_path"]) == (
        413,
        "limits.frame",
    )
    assert (await first_agent.post(b" " * 2000)).status_code == 200
    await agent.http.aclose()


async def test_a_flood_costs_the_agent_that_makes_it(
    agent_api: GatewayFixture, first_agent: AgentApiCaller, second_agent: AgentApiCaller
) -> None:
    """Beyond its rate it is told to wait; the other is served all the while."""
    calls = [{"jsonrpc": "2.0", "id": 1, "method": "hello"}] * 100

    async def flood() -> int:
        answers = (await first_agent.post(calls)).json()
        return sum(answer.get("error", {}).get("code") == -32002 for answer in answers)

    denied, deadline = 0, time.monotonic() + 60
    while (
        not denied and time.monotonic() < deadline
    ):  # a slow machine fills the bucket while it is drained
        told, answered = await asyncio.gather(
            asyncio.gather(*(flood() for _ in range(40))),
            asyncio.gather(*(second_agent.call("hello") for _ in range(50))),
        )
        denied = sum(told)
        assert len(answered) == 50
    assert denied
    assert "limit:agent-api" in agent_api.denied_rules


async def test_a_websocket_speaks_the_same_and_ends_with_the_token(
    agent_api: GatewayFixture,
) -> None:
    """Calls in order, malformed ones answered; the end of the agent closes it, and one more than eight is refused."""
    url, head = f"ws://127.0.0.1:{agent_api.port}/rpc", {"Authorization": "Bearer t2"}
    async with connect(url, additional_headers=head, proxy=None) as socket:
        for output, code in (("{", -32700), ('{"jsonrpc":"2.0","id":1,"method":"x"}', -32601)):
            await socket.send(output)
            assert json.loads(await socket.recv())["error"]["code"] == code
        await socket.send('{"jsonrpc":"2.0","id":5,"method":"hello"}')
        assert json.loads(await socket.recv())["result"]["agent"]["id"] == SECOND_AGENT_ID
        more = [await connect(url, additional_headers=head, proxy=None) for _ in range(7)]
        with pytest.raises(Exception, match="403"):
            await connect(url, additional_headers=head, proxy=None)
        agent_api.authorizer.set_rights(SECOND_AGENT_ID, [])
        await asyncio.sleep(0.05)
        agent_api.authorizer.remove(SECOND_AGENT_ID)
        with pytest.raises(ConnectionClosed) as caught:
            await asyncio.wait_for(socket.recv(), 5)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1008
        for other in more:
            await other.close()
