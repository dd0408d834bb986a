"""Sessions on a real agent-host, with session-host's parts in this process or in one of its own."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from agentbox.adapters.orchestrator.caller_params import current_caller
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.client.agent_host.program_connection import ProgramConnection
from agentbox.contracts.sessions import NewSession, PromptResult
from agentbox.core.ids import uuid7
from agentbox.plan.names import SESSION_HOST
from agentbox.sessions.environment import SessionAgent, SessionsConfig
from agentbox.sessions.manager import SessionManager
from agentbox.sessions.store import SessionStore
from support import plans
from support.agent_host import AgentHostBox
from support.instructed_agent import SCRIPT

MANIFEST = """
[sandboxes]
max = 8
[acp]
cancel_seconds = 1
initialize_seconds = 10
[agents.coder]
command = ["python3", "{agent}"]
protocol = "acp"
max_instances = 8
[agents.loader]
command = ["python3", "{agent}", "--load"]
protocol = "acp"
max_instances = 8
acp.permissions = "allow"
"""


def sessions_box(directory: Path) -> AgentHostBox:
    """An agent-host with agents that speak ACP, not yet started; they run a copy of the scripted
    agent in the workspace."""
    box = AgentHostBox(directory, manifest=manifest("agent.py"), programs=(SESSION_HOST,))
    (box.paths.workspace / "agent.py").write_text(SCRIPT)
    return box


def manifest(agent: str) -> str:
    """With that path of the scripted agent."""
    return MANIFEST.replace("{agent}", agent)


def sessions_config(box: AgentHostBox) -> SessionsConfig:
    """From the same manifest."""
    plan = plans.plan_of(manifest("agent.py"))
    agents = {
        name: SessionAgent(name=name, command=agent.command, auth="", acp=agent.acp)
        for name, agent in plan.agents.items()
        if agent.protocol == "acp"
    }
    return SessionsConfig(acp=plan.acp, agents=agents, branches=box.paths.branches)


@contextlib.asynccontextmanager
async def open_manager(
    box: AgentHostBox, directory: Path, config: Callable[[], SessionsConfig] | None = None
) -> AsyncIterator[SessionManager]:
    """Session-host's parts over its own connection to agent-host. `config`: values in force, if not
    those of the manifest."""
    connection = ProgramConnection(box.paths, SESSION_HOST, current_caller)
    await connection.open()
    store = SessionStore(directory)
    await store.open()
    booted = sessions_config(box)
    host = agent_host_client(lambda: connection)
    manager = SessionManager(host, store, config or (lambda: booted))
    await manager.start()
    try:
        yield manager
    finally:
        await manager.close()
        await store.close()
        await connection.close()


async def opened(manager: SessionManager, agent: str = "coder", **fields: Any) -> str:
    """The id of a new session."""
    made = await manager.create_session(
        NewSession(agent=agent, **fields), request_id=uuid7(), principal="alice"
    )
    assert made.state == "idle"
    return made.session_id


async def prompted(manager: SessionManager, session_id: str, text: str) -> PromptResult:
    """A turn, to its end."""
    return await manager.prompt_session(
        session_id, text, request_id=uuid7(), principal="alice", wait_s=20
    )


async def updates(manager: SessionManager, session_id: str) -> list[dict[str, Any]]:
    """All of its stream."""
    return [
        dict(item.data)
        async for item in manager.stream_session(session_id, since=0, follow=False)
        if item.kind == "update"
    ]


class Editor:
    """One connection of an editor, as the API makes it."""

    def __init__(self, manager: SessionManager, principal: str = "alice") -> None:
        self.manager, self.principal = manager, principal
        self.connection_id = uuid7()
        self.sent = self.seen = self.calls = 0
        self.messages: list[dict[str, Any]] = []

    async def send(self, message: dict[str, Any]) -> None:
        self.sent += 1
        await self.manager.send_editor(
            self.connection_id, n=self.sent, message={"jsonrpc": "2.0", **message}
        )

    async def receive(self) -> AsyncIterator[dict[str, Any]]:
        """Messages after those that were seen, without end."""
        frames = self.manager.open_editor(
            self.connection_id,
            principal=self.principal,
            scopes=("agents:write",),
            since=self.seen,
            agent="coder",
            session="",
        )
        async for frame in frames:
            if frame.message is None:
                assert frame.received == self.sent
                continue
            assert frame.n == self.seen + 1
            self.seen = frame.n
            message = json.loads(json.dumps(dict(frame.message)))
            self.messages.append(message)
            yield message
