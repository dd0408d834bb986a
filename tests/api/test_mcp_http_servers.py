"""MCP servers over HTTP: called through the proxy, under a right of their own, with a secret that agents never see."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.mcp_box import McpBox
from support.mcp_http_server import TOKEN, Server, serving

MANIFEST = """
[agents.user]
command = ["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']
mcp = ["web", "other"]
[mcp.servers.web]
transport = "http"
url = "http://127.0.0.1:{port}/mcp"
auth = "bearer"
env_var = "WEB_TOKEN"
pin = "first-use"
[mcp.servers.other]
transport = "http"
url = "http://127.0.0.1:{port}/mcp"
pin = "first-use"
[egress]
allow = ["127.0.0.1:{port}"]
allow_private = ["127.0.0.1:{port}"]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def mcp(prefix: Path, server: Server) -> Iterator[McpBox]:
    manifest = MANIFEST.replace("{port}", str(server.server_port))
    with McpBox(prefix, manifest, {"WEB_TOKEN": TOKEN}) as box:
        yield box


@pytest.fixture(scope="module")
def user(mcp: McpBox) -> str:
    return mcp.token("user")


@pytest.mark.parametrize("tool", ["echo", "events"])
def test_a_call_reaches_it_with_the_secret(
    mcp: McpBox, user: str, server: Server, tool: str
) -> None:
    """Whether it answers by JSON or by events; the request has the token, session and revision, and nothing of the
    agent's."""
    result = mcp.call(user, f"web__{tool}", word="hello")
    assert "hello" in result["content"][0]["text"]
    last = server.requests[-1]
    assert last["Authorization"] == f"Bearer {TOKEN}"
    assert (last["Mcp-Session-Id"], last["Mcp-Protocol-Version"]) == ("s-1", "2025-06-18")
    assert user not in json.dumps(server.requests)
    assert "Proxy-Authorization" not in last


def test_it_is_called_under_its_own_name(mcp: McpBox) -> None:
    """The sandbox has a right to its host alone, and the agent has none."""
    found = [row for row in mcp.client.sandboxes.list().items if row.labels.get("agentbox.mcp") == "web"]  # fmt: skip
    assert found[-1].profile == "mcp.web"
    rights = mcp.client.agents.get(found[-1].sandbox_id).policy
    targets = [grant["patterns"] for grant in rights["grants"] if grant["scope"] == "net"]
    assert targets == [[mcp.plan.reach.allow[0]]]


def test_a_server_that_refuses_is_not_available(mcp: McpBox, user: str) -> None:
    """Without the token it answers 401; the operator sees that, the agent does not."""
    assert [name for name in mcp.tool_names(user) if name.startswith("other")] == []
    shown = mcp.test("other")
    assert (shown.state, "401" in shown.detail) == ("failed", True)


def test_a_redirect_is_not_followed(mcp: McpBox, user: str) -> None:
    """The token would go elsewhere."""
    result = mcp.call(user, "web__elsewhere")
    assert "307" in result["content"][0]["text"]


def test_no_secret_of_it_is_told(mcp: McpBox, user: str) -> None:
    """Neither URL nor token in what agents and the API are told."""
    told = [mcp.post(user, "tools/list"), mcp.client.mcp.list_servers().to_wire()]
    assert TOKEN not in json.dumps(told, default=str)
    assert f":{mcp.plan.reach.allow[0].partition(':')[2]}" not in json.dumps(told[0])
