"""MCP servers that see the branch of the agent that they serve, and what they do not see."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import until
from support.mcp_box import McpBox
from support.mcp_servers import FILES

from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.client.agent_host.program_connection import ProgramConnection
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.mcp import AGENT_LABEL, OPERATOR, SERVER_LABEL
from agentbox.contracts.sandboxes import NewSandbox
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import PathOutside, SpawnError
from agentbox.mcphost.agent_host_link import PRINCIPAL
from agentbox.plan.names import MCP_HOST

AGENT = """["sh", "-c", '''
echo mine of $AGENTBOX_AGENT_ID > note
ln -s ../.. up; ln -s "$(dirname "$(dirname "$AGENTBOX_WORKSPACE")")" all
echo "$AGENTBOX_TOKEN"; exec sleep 1000''']"""
SERVER = f"""command = ["/usr/bin/python3", "-c", '''{FILES}''']
pin = "first-use"
"""
MANIFEST = f"""
[agents.user]
command = {AGENT}
max_instances = 8
mcp = ["reader", "writer", "wide"]
[agents.other]
command = {AGENT}
[agents.direct]
command = {AGENT}
workspace = "direct"
mcp = ["reader"]
[mcp.servers.reader]
{SERVER}workspace = "read"
[mcp.servers.writer]
{SERVER}workspace = "branch"
[mcp.servers.wide]
{SERVER}workspace = "read"
profile = "sandboxed"
"""


@pytest.fixture(scope="module")
def mcp(prefix: Path) -> Iterator[McpBox]:
    with McpBox(prefix, MANIFEST) as box:
        (box.paths.workspace / "README").write_text("of the operator")
        yield box


class Agent:
    """A running one: its id, token and branch."""

    def __init__(self, box: McpBox, name: str) -> None:
        self._box, self.token = box, box.token(name)
        self.id = box.client.agents.list(name=name).items[-1].handle.agent_id
        self.branch = box.paths.branches / self.id / "work"

    def call(self, server: str, tool: str, **arguments: Any) -> Any:
        """What the tool found."""
        result = self._box.call(self.token, f"{server}__{tool}", **arguments)
        assert not result.get("isError"), result
        return json.loads(result["content"][0]["text"])

    def end(self) -> None:
        """Returns when nothing of it runs."""
        self._box.client.agents.terminate(self.id, 1, grace_s=0)


@pytest.fixture(scope="module")
def user(mcp: McpBox) -> Agent:
    return Agent(mcp, "user")


@pytest.mark.parametrize("server", ["reader", "writer", "wide"])
def test_it_reads_the_branch_of_its_agent(user: Agent, server: str) -> None:
    """By the paths that the agent has, and what the agent writes later."""
    assert "note" in user.call(server, "list", path=".")
    assert user.call(server, "read", path=str(user.branch / "note")) == f"mine of {user.id}\n"
    (user.branch / server).write_text("later")
    assert user.call(server, "read", path=server) == "later"


@pytest.mark.parametrize("server", ["reader", "wide"])
def test_a_reader_cannot_write(user: Agent, server: str) -> None:
    """Whatever its profile allows: not a file, a link, a name, or the length of one."""
    for tool in ("write", "truncate", "remove", "link"):
        assert user.call(server, tool, path="note") in ("EACCES", "EPERM"), tool
    assert (user.branch / "note").read_text() == f"mine of {user.id}\n"


def test_what_a_writer_wrote_is_the_agents_change(mcp: McpBox) -> None:
    """It is in the review of the agent; the server itself leaves none."""
    agent = Agent(mcp, "user")
    assert agent.call("writer", "write", path="made") == "done"
    agent.end()
    page = mcp.client.reviews.show(agent.id)
    assert "made" in [change.path for change in page.changes]
    assert {row.agent_id for row in mcp.client.reviews.list().items} <= _agents(mcp)


def _as_mcp_host(box: McpBox, attempt: Callable[[AgentHost], Awaitable[None]]) -> None:
    """Over a connection to agent-host with the token of mcp-host."""

    async def run() -> None:
        connection = ProgramConnection(box.paths, MCP_HOST, lambda: {"principal": PRINCIPAL})
        await connection.open()
        try:
            await attempt(agent_host_client(lambda: connection))
        finally:
            await connection.close()

    asyncio.run(run())


async def _create(host: AgentHost, server: str, agent_id: str) -> str:
    """The id of a sandbox for that server, which is said to serve that agent."""
    new = NewSandbox(name=server, labels={SERVER_LABEL: server, AGENT_LABEL: agent_id})
    return (await host.create_sandbox(new, request_id=uuid7())).sandbox_id


def _agents(box: McpBox) -> set[str]:
    """The ids of agents that are not sandboxes."""
    return {row.handle.agent_id for row in box.client.agents.list().items if row.kind == "agent"}


@pytest.mark.parametrize("server", ["reader", "writer", "wide"])
def test_it_reaches_no_branch_of_another(mcp: McpBox, user: Agent, server: str) -> None:
    """Not by its path, nor by links that its agent made in the branch, nor the control plane's files or the workspace
    of the operator. The kernel refuses: the server itself makes the calls."""
    other = Agent(mcp, "other")
    ways = [
        str(other.branch / "note"),
        f"../../{other.id}/work/note",
        f"up/{other.id}/work/note",
        f"all/{other.id}/work/note",
        str(mcp.paths.workspace / "README"),
        str(mcp.paths.mcp_host_token),
    ]
    assert {way: user.call(server, "read", path=way) for way in ways} == dict.fromkeys(ways, "EACCES")  # fmt: skip
    for way in (str(other.branch), "up", "all", f"all/{other.id}", f"all/{user.id}/home"):
        assert user.call(server, "list", path=way) == "EACCES"
        assert user.call(server, "write", path=f"{way}/planted") == "EACCES"
    assert not (other.branch / "planted").exists()
    other.end()


def test_a_folder_that_becomes_a_link_leads_nowhere(mcp: McpBox, user: Agent) -> None:
    """Also while the server runs, and after it is started again: its right is to the branch, not to a name in it."""
    other = Agent(mcp, "other")
    folder = user.branch / "folder"
    folder.mkdir()
    (folder / "note").write_text("inside")
    assert user.call("reader", "read", path="folder/note") == "inside"
    (folder / "note").unlink()
    folder.rmdir()
    folder.symlink_to(other.branch)
    assert user.call("reader", "read", path="folder/note") == "EACCES"
    mcp.client.mcp.restart_server("reader")
    assert user.call("reader", "read", path="folder/note") == "EACCES"
    other.end()


def test_each_agent_has_the_server_of_its_own_branch(mcp: McpBox, user: Agent) -> None:
    """Two agents of one table."""
    second = Agent(mcp, "user")
    assert second.call("reader", "read", path="note") == f"mine of {second.id}\n"
    assert user.call("reader", "read", path="note") == f"mine of {user.id}\n"
    assert second.call("reader", "read", path=str(user.branch / "note")) == "EACCES"
    second.end()


def test_it_ends_before_the_branch_is_compared(mcp: McpBox) -> None:
    """A server that writes on and on: when the end of its agent returns, no process of it runs, and what is reviewed
    does not change any more."""
    agent = Agent(mcp, "user")
    agent.call("writer", "keep_writing", path="log")
    until(lambda: (agent.branch / "log").exists(), 10)
    agent.end()
    assert not [row for row in _servers(mcp, agent.id) if row.exit is None]
    first = mcp.client.reviews.show(agent.id)
    assert "log" in [change.path for change in first.changes]
    mcp.client.reviews.commit(agent.id, first.summary.digest)  # else the digest would differ
    assert (mcp.paths.workspace / "log").exists()


def _servers(box: McpBox, agent_id: str) -> list[Any]:
    """The sandboxes of the servers of that agent."""
    found = box.client.sandboxes.list().items
    return [row for row in found if row.labels.get(AGENT_LABEL) == agent_id]


def test_the_operators_instance_sees_an_empty_folder(mcp: McpBox) -> None:
    """That of `mcp test` and `mcp pin`: neither a branch nor the workspace."""
    assert mcp.test("writer").state == "running"
    row = _servers(mcp, OPERATOR)[-1]
    assert list((mcp.paths.branches / row.sandbox_id / "tmp" / "workspace").iterdir()) == []


def test_an_agent_without_a_branch_has_no_such_server(mcp: McpBox) -> None:
    """One that works in the workspace itself."""
    spec = {"name": "direct", "agent": "direct"}
    agent_id = mcp.client.agents.spawn(spec).agent_id

    async def attempt(host: AgentHost) -> None:
        await _create(host, "reader", agent_id)

    with pytest.raises(SpawnError, match="has no branch"):
        _as_mcp_host(mcp, attempt)


@pytest.mark.parametrize("server", ["reader", "writer"])
def test_mcp_host_cannot_name_the_branch_of_others(mcp: McpBox, user: Agent, server: str) -> None:
    """Under the control of a server: agent-host knows who is offered it, and who has ended."""
    other, ended = Agent(mcp, "other"), Agent(mcp, "user")
    ended.end()

    async def attempt(host: AgentHost) -> None:
        for agent_id in (other.id, ended.id, "", uuid7(), "../" + user.id):
            with pytest.raises(SpawnError, match="no running agent of that id"):
                await _create(host, server, agent_id)

    _as_mcp_host(mcp, attempt)
    other.end()


def test_mcp_host_cannot_write_where_a_server_only_reads(mcp: McpBox, user: Agent) -> None:
    """By the file operations of the sandbox that it made."""

    async def attempt(host: AgentHost) -> None:
        sandbox_id = await _create(host, "reader", user.id)
        with pytest.raises(PathOutside):
            await host.write_sandbox_file(
                sandbox_id, "workspace/note", upload="u", data=b"x", last=True
            )
        await host.end_sandbox(sandbox_id, grace_s=0)

    _as_mcp_host(mcp, attempt)
