"""Sandboxes of sessions of a real agent-host, over the connection of session-host."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.client.agent_host.program_connection import ProgramConnection
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.sandboxes import SessionSandbox
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import NotFound
from agentbox.plan.names import SESSION_HOST
from support.agent_host import AgentHostBox
from support.host_sandboxes import get

MANIFEST = """
[sandboxes]
max = 2

[policies.worker]
base = "sandboxed"
[[policies.worker.tool]]
mode = "allow"
patterns = ["pod/*"]

[acp]
max_message = "64KiB"

[agents.coder]
command = ["coder", "--acp"]
protocol = "acp"
profile = "worker"
limits.pids = 40

[agents.lines]
command = ["cat"]
protocol = "stdio"
"""
ALICE = {"principal": "urn:agentbox:token:alice"}


@contextlib.asynccontextmanager
async def open_sessions(box: AgentHostBox) -> AsyncIterator[AgentHost]:
    """As session-host, for one caller."""
    connection = ProgramConnection(box.paths, SESSION_HOST, lambda: ALICE)
    await connection.open()
    yield agent_host_client(lambda: connection)
    await connection.close()


async def start(sessions: AgentHost, agent: str = "coder") -> str:
    """The id of a new one."""
    new = SessionSandbox(agent=agent, name="s1")
    return (await sessions.create_session_sandbox(new, request_id=uuid7())).sandbox_id


async def wait_for_file(sessions: AgentHost, sandbox_id: str, path: str) -> None:
    """Until one of its programs has made that file."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(NotFound):
                await get(sessions, sandbox_id, path)
                return
            await asyncio.sleep(0.02)
