"""MCP revision 2026-07-28 at the agent API, message by message."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from mcp_types import methods
from support.fake_authorizer import right
from support.gateway_fixture import TOKEN, GatewayFixture

from agentbox.gateway.agent_api.mcp import BY_NAME, VERSIONS
from agentbox.gateway.agent_api.mcp_stateless import (
    HEADER_MISMATCH,
    REVISION,
    UNSUPPORTED_VERSION,
)

PREFIX = "io.modelcontextprotocol/"
META = {f"{PREFIX}protocolVersion": REVISION, f"{PREFIX}clientCapabilities": {}}


class Stateless:
    """A client that writes envelope and headers by hand, so that a test can get them wrong."""

    def __init__(self, gateway: GatewayFixture) -> None:
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{gateway.port}",
            headers={
                "Authorization": f"Bearer {TOKEN}",
                "Accept": "application/json, text/event-stream",
            },
            trust_env=False,
            timeout=20,
        )

    def request(
        self, method: str, params: dict[str, Any], meta: dict[str, Any], headers: dict[str, str]
    ) -> httpx.Request:
        message = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": method,
            "params": {**params, "_meta": meta},
        }
        sent = {"MCP-Protocol-Version": REVISION, "Mcp-Method": method}
        if method == "tools/call":
            sent["Mcp-Name"] = params["name"]
        return self.http.build_request("POST", "/mcp", json=message, headers={**sent, **headers})

    async def post(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
        **headers: str,
    ) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = self.request(method, params or {}, META if meta is None else meta, named)
        return await self.http.send(request)


@pytest.fixture
async def client(gateway: GatewayFixture) -> AsyncIterator[Stateless]:
    gateway.authorizer.set_rights("one", [right("tool", "call", "bead/*")])
    made = Stateless(gateway)
    yield made
    await made.http.aclose()


def error(response: httpx.Response) -> tuple[int, int]:
    """Status and code."""
    return response.status_code, response.json()["error"]["code"]


async def test_results_have_the_form_of_the_revision(client: Stateless) -> None:
    """Judged by the official types: discovery, the list of tools, a call."""
    for method, params in (
        ("server/discover", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "bead_ready", "arguments": {}}),
    ):
        response = await client.post(method, params)
        assert response.status_code == 200
        result = response.json()["result"]
        methods.validate_server_result(method, REVISION, result)
        assert result["resultType"] == "complete"
        assert result["_meta"][f"{PREFIX}serverInfo"]["name"] == "agentbox"
    discovered = (await client.post("server/discover")).json()["result"]
    assert discovered["supportedVersions"] == list(VERSIONS)
    assert discovered["cacheScope"] == "private"


async def test_tools_are_in_one_order_and_have_names_that_models_accept(client: Stateless) -> None:
    """Twice the same, and no name that some vendor refuses."""
    first, second = [
        [tool["name"] for tool in (await client.post("tools/list")).json()["result"]["tools"]]
        for _ in range(2)
    ]
    assert first == second
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in BY_NAME)


async def test_an_envelope_that_is_wrong(client: Stateless) -> None:
    """Each member that is missing, and each header that says something else, is named."""
    no_version = {name: META[name] for name in META if "Version" not in name}
    no_capabilities = {name: META[name] for name in META if "Capab" not in name}
    assert error(await client.post("tools/list", meta=no_version)) == (400, -32602)
    assert error(await client.post("tools/list", meta=no_capabilities)) == (400, -32602)
    mismatched = (400, HEADER_MISMATCH)
    assert error(await client.post("tools/list", Mcp_Method="tools/call")) == mismatched
    assert error(await client.post("tools/list", MCP_Protocol_Version="2025-11-25")) == mismatched
    call = {"name": "bead_ready", "arguments": {}}
    assert error(await client.post("tools/call", call, Mcp_Name="bead_close")) == mismatched
    assert error(await client.post("tools/call", call, Mcp_Name="=?base64?%%?=")) == mismatched
    encoded = base64.b64encode(b"bead_ready").decode()
    assert (
        await client.post("tools/call", call, Mcp_Name=f"=?base64?{encoded}?=")
    ).status_code == 200
    request = client.request("tools/list", {}, META, {})
    request.headers = httpx.Headers([*request.headers.raw, (b"mcp-method", b"tools/list")])
    assert error(await client.http.send(request)) == mismatched


async def test_a_version_that_is_not_served(client: Stateless) -> None:
    """The answer says which are."""
    meta = {**META, f"{PREFIX}protocolVersion": "2027-01-01"}
    response = await client.post("tools/list", meta=meta, MCP_Protocol_Version="2027-01-01")
    assert error(response) == (400, UNSUPPORTED_VERSION)
    assert response.json()["error"]["data"] == {
        "supported": list(VERSIONS),
        "requested": "2027-01-01",
    }


async def test_methods_that_the_revision_does_not_have(client: Stateless) -> None:
    """Status 404; a batch and a response are 400, a notification is acknowledged."""
    for method in ("initialize", "ping", "prompts/list", "nothing"):
        assert error(await client.post(method)) == (404, -32601)
    headers = {"MCP-Protocol-Version": REVISION}
    batch = await client.http.post("/mcp", json=[{}], headers=headers)
    assert error(batch) == (400, -32600)
    reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert error(await client.http.post("/mcp", json=reply, headers=headers)) == (400, -32600)
    broken = await client.http.post("/mcp", content=b"{", headers=headers)
    assert error(broken) == (400, -32700)
    told = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    assert (await client.http.post("/mcp", json=told, headers=headers)).status_code == 202


async def test_a_long_call_tells_its_progress(gateway: GatewayFixture, client: Stateless) -> None:
    """The stream has a notification for the token of the request, and ends with the result."""
    gateway.authorizer.add(
        "one", TOKEN, [right("tool", "call", "bead/*")], approval_required=("tool:bead/ready",)
    )
    gateway.authorizer.decided, gateway.authorizer.approves = asyncio.Event(), True
    meta = {**META, "progressToken": "p1"}
    request = client.request("tools/call", {"name": "bead_ready", "arguments": {}}, meta, {})
    response = await client.http.send(request, stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    messages = []
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            messages.append(json.loads(line.removeprefix("data: ")))
            gateway.authorizer.decided.set()
    *told, last = messages
    assert {message["method"] for message in told} == {"notifications/progress"}
    assert {message["params"]["progressToken"] for message in told} == {"p1"}
    assert (last["id"], last["result"]["resultType"]) == (7, "complete")


async def test_a_short_call_with_a_token_is_answered_at_once(client: Stateless) -> None:
    """By a JSON body, with the status of its error."""
    meta = {**META, "progressToken": 3}
    response = await client.post("tools/list", meta=meta)
    assert response.headers["content-type"] == "application/json"
    assert error(await client.post("nothing", meta=meta)) == (404, -32601)
