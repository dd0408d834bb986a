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
mcp = ["web", "other", "broken"]
[mcp.servers.web]
transport = "http"
url = "http://127.0.0.1:{port}/mcp"
auth = "bearer"
env_var = "WEB_TOKEN"
pin = "first-use"
[mcp.servers.web.headers.X-Region]
value = "eu-west"
[mcp.servers.web.headers.X-Api-Key]
env_var = "WEB_KEY"
[mcp.servers.broken]
transport = "http"
url = "http://127.0.0.1:{port}/mcp"
pin = "first-use"
[mcp.servers.broken.headers.X-Api-Key]
env_var = "BROKEN_KEY"
[mcp.servers.other]
transport = "http"
url = "http://127.0.0.1:{port}/mcp"
pin = "first-use"
[egress]
allow = ["127.0.0.1:{port}"]
allow_private = ["127.0.0.1:{port}"]
"""

KEY, BROKEN_KEY = "key-of-the-server", "first-line\nsecond-line"
SECRETS = {"WEB_TOKEN": TOKEN, "WEB_KEY": KEY, "BROKEN_KEY": BROKEN_KEY}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def mcp(prefix: Path, server: Server) -> Iterator[McpBox]:
    manifest = MANIFEST.replace("{port}", str(server.server_port))
    with McpBox(prefix, manifest, SECRETS) as box:
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
    assert (last["X-Region"], last["X-Api-Key"]) == ("eu-west", KEY)
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


def test_a_redirect_is_not_followed(mcp: McpBox, user: str, server: Server) -> None:
    """The token and the headers would go elsewhere, or to another path of the same host."""
    before = len(server.requests)
    result = mcp.call(user, "web__elsewhere")
    assert "307" in result["content"][0]["text"]
    assert len(server.requests) == before + 1


def test_a_secret_that_is_no_header_is_not_told(mcp: McpBox, user: str) -> None:
    """Its value would be in the error of the library, which an agent reads."""
    shown = mcp.test("broken")
    assert shown.state == "failed"
    assert "the secret BROKEN_KEY is not the value of a header" in shown.detail
    told = json.dumps([shown.to_wire(), mcp.call(user, "broken__echo")], default=str)
    assert "first-line" not in told
    assert "second-line" not in told


def test_no_command_line_has_the_address(mcp: McpBox, user: str, server: Server) -> None:
    """Nor a header or a secret: every agent of the box can read the command lines of all programs."""
    mcp.call(user, "web__echo", word="hello")
    lines = [line for path in Path("/proc").glob("[0-9]*/cmdline") if (line := _read(path))]
    assert any(b"streamable HTTP" in line for line in lines)  # the bridge runs
    for text in (f":{server.server_port}/mcp", "eu-west", KEY, TOKEN):
        assert not [line for line in lines if text.encode() in line]


def _read(path: Path) -> bytes:
    """Empty for a process that has ended."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_no_secret_of_it_is_told(mcp: McpBox, user: str) -> None:
    """Neither URL nor token in what agents and the API are told."""
    told = [mcp.post(user, "tools/list"), mcp.client.mcp.list_servers().to_wire()]
    assert TOKEN not in json.dumps(told, default=str)
    assert KEY not in json.dumps([told, mcp.plan.to_json()], default=str)
    assert f":{mcp.plan.reach.allow[0].partition(':')[2]}" not in json.dumps(told[0])
