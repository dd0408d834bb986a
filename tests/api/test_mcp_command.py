"""`agentbox mcp` against a real API and agent-host, used by the official client of the protocol."""

import asyncio
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent
from support.api_box import ApiBox
from support.ports import free_port

from agentbox.client import BoxClient
from agentbox.host.mcp.access import SCOPES, TOKEN_NAME

ESCAPES = "\x1b]52;c;ZXZpbA==\x07 \u202e"
CLEAR = "import sys; sys.stdout.write(" + repr(ESCAPES) + ")"


def server(words: list[str]) -> StdioServerParameters:
    """How a desktop client starts it."""
    return StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))


def text(result: CallToolResult) -> str:
    """All text of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def data(result: CallToolResult) -> object:
    """The JSON between the marks."""
    found = re.search(r"until ([0-9a-f]{16})\]\n(.*)\n\[\1\]", text(result), re.DOTALL)
    assert found is not None, text(result)
    return json.loads(found[2])


async def test_a_program_is_run_and_reviewed(mcp_command: Callable[..., list[str]]) -> None:
    """Its output and exit code, what it changed, and that nobody but a person can take it."""
    async with Client(server(mcp_command())) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "review_commit" not in tools
        assert all(re.fullmatch(r"[a-z_]{1,64}", name) for name in tools)
        script = "echo here; echo there >&2; echo new > made.txt; exit 3"
        ran = await client.call_tool("run", {"command": ["sh", "-c", script]})
        assert not ran.is_error
        assert "exit code 3" in text(ran)
        assert re.search(r"stdout:\n\[data from the box.*\]\nhere\n", text(ran))
        assert re.search(r"stderr:\n\[data from the box.*\]\nthere\n", text(ran))
        agent = re.search(r"Agent (\S+):", text(ran))
        assert agent is not None
        shown = await client.call_tool("review_show", {"agent_id": agent[1]})
        assert "made.txt" in text(shown)
        listed = await client.call_tool("review_list", {})
        assert agent[1] in text(listed)


async def test_tasks_and_records(mcp_command: Callable[..., list[str]], client: BoxClient) -> None:
    """A task in the background, a bead, and errors of the box in its own words."""
    async with Client(server(mcp_command())) as mcp:
        submitted = data(await mcp.call_tool("task_submit", {"command": ["echo", "later"]}))
        assert isinstance(submitted, dict)
        task_id = submitted["task_id"]
        for _ in client.task_logs(task_id):
            pass
        assert "later" in text(await mcp.call_tool("task_logs", {"task_id": task_id}))
        assert '"succeeded"' in text(await mcp.call_tool("task_show", {"task_id": task_id}))
        made = data(await mcp.call_tool("bead_create", {"title": "a wish"}))
        assert isinstance(made, dict)
        assert "a wish" in text(await mcp.call_tool("bead_show", {"bead_id": made["id"]}))
        for name, arguments in (
            ("agent_list", {}),
            ("bead_list", {}),
            ("bead_ready", {}),
            ("memory_search", {"query": "a wish"}),
            ("pod_list", {}),
            ("events_read", {"limit": 5}),
            ("usage", {}),
        ):
            result = await mcp.call_tool(name, arguments)
            assert not result.is_error, (name, text(result))
        lost = await mcp.call_tool("bead_show", {"bead_id": "nothing"})
        assert lost.is_error
        nothing = await mcp.call_tool("run", {})
        assert nothing.is_error
        assert "give `command`" in text(nothing)


async def test_programs_share_a_sandbox(mcp_command: Callable[..., list[str]]) -> None:
    """A file that one call writes is there for the next, and for the review at the end."""
    async with Client(server(mcp_command())) as client:
        made = data(await client.call_tool("sandbox_create", {}))
        assert isinstance(made, dict)
        here = {"sandbox_id": made["sandbox_id"]}
        await client.call_tool(
            "sandbox_write", {**here, "path": "workspace/a.txt", "content": "one\n"}
        )
        words = ["sh", "-c", "cat a.txt; echo two >> a.txt; exit 4"]
        ran = await client.call_tool("sandbox_exec", {**here, "command": words})
        assert "exit code 4" in text(ran)
        assert "one" in text(ran)
        assert (
            data(await client.call_tool("sandbox_read", {**here, "path": "workspace/a.txt"}))
            == "one\ntwo\n"
        )
        outside = await client.call_tool("sandbox_read", {**here, "path": "workspace/../../x"})
        assert outside.is_error
        missing = await client.call_tool("sandbox_exec", {**here, "command": ["no-such-program"]})
        assert missing.is_error
        assert not (await client.call_tool("sandbox_end", here)).is_error
        shown = await client.call_tool("review_show", {"agent_id": made["sandbox_id"]})
        assert "a.txt" in text(shown)


async def test_output_of_a_program_is_data(mcp_command: Callable[..., list[str]]) -> None:
    """It cannot end its mark, and no escape of a terminal is left in it."""
    async with Client(server(mcp_command())) as client:
        ran = await client.call_tool("run", {"command": ["python3", "-c", CLEAR]})
        assert "\x1b" not in text(ran)
        assert "\u202e" not in text(ran)
        assert "\\x1b]52" in text(ran)
        marks = set(re.findall(r"until ([0-9a-f]{16})\]", text(ran)))
        again = await client.call_tool("run", {"command": ["python3", "-c", CLEAR]})
        assert marks.isdisjoint(re.findall(r"until ([0-9a-f]{16})\]", text(again)))


async def test_its_token_is_weak_and_ends_with_it(
    mcp_command: Callable[..., list[str]], client: BoxClient
) -> None:
    """Neither admin nor decisions; revoked when the client has gone."""
    async with Client(server(mcp_command())) as mcp:
        await mcp.list_tools()
        (token,) = [row for row in client.tokens.list().items if row.name == TOKEN_NAME]
        assert set(token.scopes) == set(SCOPES)
        assert not {"admin", "reviews:write", "approvals:write"} & set(SCOPES)
    assert not [row for row in client.tokens.list().items if row.name == TOKEN_NAME]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_review_is_committed_by_a_person(
    mcp_command: Callable[..., list[str]], box: ApiBox, mode: str
) -> None:
    """The form shows the digest; who declines, and a client without forms, commits nothing."""
    name = f"{mode}.txt"
    replies = ["decline", "accept"]
    asked: list[str] = []

    async def answer(_context: object, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        action = replies.pop(0)
        return ElicitResult(
            action="accept" if action == "accept" else "decline",
            content={"commit": True} if action == "accept" else None,
        )

    words = mcp_command("--allow", "review-commit")
    async with Client(server(words), elicitation_callback=answer, mode=mode) as client:  # type: ignore[arg-type]
        ran = await client.call_tool("run", {"command": ["sh", "-c", f"echo new > {name}"]})
        agent = re.search(r"Agent (\S+):", text(ran))
        assert agent is not None
        page = data(await client.call_tool("review_show", {"agent_id": agent[1]}))
        assert isinstance(page, dict)
        wanted = {"agent_id": agent[1], "digest": page["summary"]["digest"]}
        async with Client(server(words), mode=mode) as plain:  # type: ignore[arg-type]
            assert "elicit" in await refusal(plain, wanted)
        assert not (box.paths.workspace / name).exists()
        declined = await client.call_tool("review_commit", wanted)
        assert declined.is_error
        assert not (box.paths.workspace / name).exists()
        done = await client.call_tool("review_commit", wanted)
        assert not done.is_error, text(done)
    assert (box.paths.workspace / name).read_text() == "new\n"
    assert all(wanted["digest"] in message for message in asked)
    assert len(asked) == 2


async def refusal(client: Client, arguments: dict[str, str]) -> str:
    """Why review_commit was refused: an error of the protocol in the newest revision, else of the
    tool. Raises AssertionError if it was not."""
    try:
        result = await client.call_tool("review_commit", arguments)
    except MCPError as error:
        return str(error).lower()
    assert result.is_error, text(result)
    return text(result).lower()


async def answered(client: httpx2.AsyncClient, url: str) -> httpx2.Response:
    """The first response of a server that starts."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await client.post(url, json={})
            except httpx2.ConnectError:
                await asyncio.sleep(0.01)


async def test_over_http_it_wants_its_token(mcp_command: Callable[..., list[str]]) -> None:
    """On loopback; a page of another origin and a caller without the token are refused."""
    port = free_port()
    with subprocess.Popen(
        mcp_command("--http", str(port)), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().strip()
            header = process.stderr.readline().strip().removeprefix("Authorization: ")
            assert url == f"http://127.0.0.1:{port}/mcp"
            async with httpx2.AsyncClient(trust_env=False) as anybody:
                assert (await answered(anybody, url)).status_code == 401
                evil = {"Authorization": header, "Origin": "https://evil.example"}
                assert (await anybody.post(url, json={}, headers=evil)).status_code == 403
            async with (
                httpx2.AsyncClient(headers={"Authorization": header}, trust_env=False) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                ran = await client.call_tool("run", {"command": ["echo", "by http"]})
                assert "by http" in text(ran)
        finally:
            process.terminate()
            process.wait(20)


@pytest.mark.parametrize("client", ["claude-desktop", "claude-code", "cursor", "gemini", "codex"])
def test_the_entry_of_a_client_starts_it(
    mcp_command: Callable[..., list[str]], client: str
) -> None:
    """The text is in the client's own format, and names this checkout and manifest."""
    words = mcp_command("config", client)
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    if client == "codex":
        entry = tomllib.loads(done.stdout)["mcp_servers"]["agentbox"]
    else:
        entry = json.loads(done.stdout)["mcpServers"]["agentbox"]
    assert entry["command"].endswith("agentbox.sh")
    assert entry["args"][0] == "--manifest"
    assert entry["args"][-1] == "mcp"
