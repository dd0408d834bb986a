"""Connections of programs to a real agent-host: each reaches what it made, by the operations of its row."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_host import AgentHostBox
from support.host_agents import spawn
from support.host_sandboxes import create, get, put, run, sh

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.context import CallContext
from agentbox.agents.rpc.program_access import METHODS
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.client.agent_host.program_connection import ProgramConnection
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.agent_host.rpc import rpc_methods
from agentbox.contracts.operations.agent_host import AGENT_HOST
from agentbox.contracts.operations.agents import AGENTS
from agentbox.contracts.orchestrator import Limits
from agentbox.contracts.sandboxes import NewSandbox
from agentbox.core.deadline import Deadline
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import (
    NotFound,
    PermissionDenied,
    QuotaExceeded,
    SlotUnavailable,
    SpawnError,
)
from agentbox.plan.names import MCP_HOST, SESSION_HOST

MINE, OTHER = SESSION_HOST, MCP_HOST
# mcp-host starts servers of the manifest only; other callers may have that label too.
SERVER = "[mcp.servers.lab]\ncommand = ['true']\nprofile = 'sandboxed'\n"
LABELS = {"agentbox.mcp": "lab"}
ALICE = {"principal": "urn:agentbox:token:alice"}


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(
        tmp_path_factory.mktemp("box"),
        programs=(MINE, OTHER, "telegram-mirror"),
        manifest=SERVER,
    )
    made.start()
    yield made
    made.stop()


@contextlib.asynccontextmanager
async def open_program(
    box: AgentHostBox, program: str, caller: dict[str, Any] = ALICE
) -> AsyncIterator[AgentHost]:
    connection = ProgramConnection(box.paths, program, lambda: caller)
    await connection.open()
    yield agent_host_client(lambda: connection)
    await connection.close()


@pytest.fixture
async def mine(box: AgentHostBox, host: AgentHost) -> AsyncIterator[AgentHost]:
    async with open_program(box, MINE) as opened:
        yield opened


@pytest.fixture
async def other(box: AgentHostBox, host: AgentHost) -> AsyncIterator[AgentHost]:
    async with open_program(box, OTHER) as opened:
        yield opened


async def test_a_program_uses_what_it_made(mine: AgentHost, host: AgentHost) -> None:
    """Programs, files and the review; the control plane sees all of it."""
    one = await create(mine)
    assert (await sh(mine, one, "echo 1 > new; echo out")).stdout == b"out\n"
    await put(mine, one, "workspace/second", b"2\n")
    assert await get(mine, one, "workspace/second") == b"2\n"
    listed = [page.sandbox_id for page in (await mine.list_sandboxes(limit=100, cursor=None)).items]
    all_of_them = (await host.list_sandboxes(limit=100, cursor=None)).items
    assert one in listed
    assert one in [each.sandbox_id for each in all_of_them]
    await mine.end_sandbox(one, grace_s=0)
    (review,) = await mine.list_reviews()
    assert (review.agent_id, review.added) == (one, 2)
    shown = await mine.show_review(one, at=0, limit=1000)
    await mine.discard_review(one, by=ALICE["principal"])
    assert shown.summary.agent_id == one


Call = Callable[[AgentHost, str], Awaitable[object]]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda on, one: on.get_sandbox(one), id="get"),
        pytest.param(lambda on, one: on.end_sandbox(one, grace_s=0), id="end"),
        pytest.param(lambda on, one: run(on, one, "true"), id="exec"),
        pytest.param(lambda on, one: on.signal_exec(one, 1, "KILL"), id="signal"),
        pytest.param(lambda on, one: on.write_exec_stdin(one, 1, data=b"", eof=True), id="stdin"),
        pytest.param(lambda on, one: anext(on.stream_exec(one, 1, since=0, follow=False)), id="stream"),
        pytest.param(lambda on, one: get(on, one, "workspace/a"), id="read"),
        pytest.param(lambda on, one: put(on, one, "workspace/a", b"x"), id="write"),
        pytest.param(lambda on, one: on.remove_sandbox_file(one, "workspace/a"), id="remove"),
        pytest.param(lambda on, one: on.show_review(one, at=0, limit=1), id="review"),
        pytest.param(lambda on, one: on.commit_review(one, digest="0", by="x"), id="commit"),
        pytest.param(lambda on, one: on.discard_review(one, by="x"), id="discard"),
    ],
)  # fmt: skip
async def test_nobody_elses_sandbox_exists_for_a_program(
    call: Call, mine: AgentHost, other: AgentHost, host: AgentHost
) -> None:
    """Neither that of another program nor that of an operator; their owners still have them."""
    for owner in (other, host):
        one = await create(owner, labels=LABELS)
        await sh(owner, one, "echo kept > a")
        with pytest.raises(NotFound):
            await call(mine, one)
        assert await get(owner, one, "workspace/a") == b"kept\n"
        listed = (await mine.list_sandboxes(limit=100, cursor=None)).items
        assert one not in [each.sandbox_id for each in listed]


async def test_a_request_id_of_another_one_makes_a_new_sandbox(
    mine: AgentHost, other: AgentHost, host: AgentHost
) -> None:
    """Also with the principal of the other one; its own one is the same sandbox."""
    request_id, new = uuid7(), NewSandbox(name="lab", labels=LABELS)
    made = [await on.create_sandbox(new, request_id=request_id) for on in (host, other, mine, mine)]
    ids = [one.sandbox_id for one in made]
    assert len(set(ids)) == 3
    assert ids[2] == ids[3]


async def test_mcp_host_starts_servers_only(other: AgentHost, mine: AgentHost) -> None:
    """As the row says: it can ask neither for another profile nor for a sandbox without a row."""
    asked = await create(other, labels=LABELS, profile="unrestricted")
    assert (await other.get_sandbox(asked)).profile == "sandboxed"
    for labels in ({}, {"agentbox.mcp": "nothing"}):
        with pytest.raises(SpawnError, match="no such"):
            await create(other, labels=labels)
    assert (await mine.get_sandbox(await create(mine, labels=LABELS))).profile == "sandboxed"


async def test_a_program_has_no_rights_of_its_callers(box: AgentHostBox, host: AgentHost) -> None:
    """An admin may raise limits; a program that says so may not."""
    raised = NewSandbox(name="lab", limits=Limits(pids=200))
    caller = {**ALICE, "admin": True, "submitter": "urn:agentbox:operator", "submitter_admin": True}
    async with open_program(box, MINE, caller) as program:
        with pytest.raises(QuotaExceeded):
            await program.create_sandbox(raised, request_id=uuid7())
    with context.as_caller(CallContext(scopes=frozenset({"admin"}))):
        assert (await host.create_sandbox(raised, request_id=uuid7())).state == "running"


async def test_a_program_calls_the_methods_of_its_row_only(
    box: AgentHostBox, adapter: LocalProcessOrchestrator
) -> None:
    """Each other one is refused before it reads its parameters."""
    agent = await spawn(adapter, "lab", argv=("sleep", "1000"))
    every = {
        method.name
        for resource in (AGENTS, AGENT_HOST)
        for method in rpc_methods(resource).values()
    } | {"agent.stdin", "shutdown"}
    for program in (MINE, OTHER):
        connection = ProgramConnection(box.paths, program, lambda: ALICE)
        client = await connection._connected()
        refused = set()
        for method in every - METHODS[program]:
            params = {"agent_id": agent.agent_id, "generation": 1, "grace_s": 0}
            with pytest.raises(PermissionDenied):
                await client.call(method, params, Deadline.after(10))
            refused.add(method)
        assert {"agent.spawn", "record.read", "grant.use", "state.list"} <= refused
        assert (await client.call("ping", {}, Deadline.after(10)))["degraded"] == ""
        await connection.close()
    assert (await adapter.get(agent.agent_id)).state == "running"
    assert box.running


async def test_only_programs_with_a_row_have_a_token(box: AgentHostBox) -> None:
    """Each its own, that only its user can read; a wrong one is refused."""
    found = sorted(path.parent.name for path in box.paths.connections.glob("*/*"))
    assert found == sorted((MINE, OTHER))
    path = box.paths.agent_host_token(MINE)
    assert path.stat().st_mode & 0o777 == 0o400
    assert path.read_text() != box.paths.agent_host_token(OTHER).read_text()
    path.rename(path.with_suffix(".kept"))
    path.write_text("")
    with pytest.raises(PermissionDenied):
        await ProgramConnection(box.paths, MINE, lambda: ALICE).open()
    path.with_suffix(".kept").rename(path)


async def reconnect(connection: ProgramConnection) -> None:
    """A call on the lost connection fails; the next one opens another."""
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(SlotUnavailable):
                await agent_host_client(lambda: connection).list_sandboxes(limit=1, cursor=None)
                return
            await asyncio.sleep(0)


async def test_ownership_outlives_agent_host(tmp_path: Path) -> None:
    """After a crash: the connection is opened again, with the token of the new start."""
    box = AgentHostBox(tmp_path, programs=(MINE, OTHER))
    box.start()
    connections = [ProgramConnection(box.paths, one, lambda: ALICE) for one in (MINE, OTHER)]
    mine, other = (agent_host_client(lambda c=c: c) for c in connections)  # type: ignore[misc]
    for connection in connections:
        await connection.open()
    one = await create(mine)
    await sh(mine, one, "echo 1 > new; echo out")
    box.kill()
    box.start()
    for connection in connections:
        await reconnect(connection)
    with pytest.raises(NotFound):
        await other.get_sandbox(one)
    assert (await mine.get_sandbox(one)).execs[0].exit is not None
    for connection in connections:
        await connection.close()
    box.stop()
