"""Cancellations of editors: each prompt has a stop reason."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_host import AgentHostBox
from support.sessions_lab import Editor, open_manager, sessions_box

from agentbox.sessions.manager import SessionManager


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = sessions_box(tmp_path_factory.mktemp("box"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
async def manager(box: AgentHostBox, tmp_path: Path) -> AsyncIterator[SessionManager]:
    async with open_manager(box, tmp_path / "sessions") as made:
        yield made


async def answer(messages: AsyncIterator[dict[str, Any]], n: int) -> Any:
    """The result of request `n`."""
    async with asyncio.timeout(20):
        async for message in messages:
            if message.get("id") == n and "method" not in message:
                return message["result"]
    raise AssertionError("no answer")


async def test_a_prompt_that_is_cancelled_at_once(manager: SessionManager) -> None:
    """Before its turn has begun, as the session resumes first; the agent never gets it."""
    editor = Editor(manager)
    messages = editor.receive()
    opened = asyncio.ensure_future(anext(messages))
    while editor.connection_id not in manager.editors.connections:
        await asyncio.sleep(0)
    capabilities = {"protocolVersion": 1, "clientCapabilities": {}}
    await editor.send({"id": 1, "method": "initialize", "params": capabilities})
    assert (await opened)["id"] == 1
    params: dict[str, Any] = {"cwd": "/workspace", "mcpServers": []}
    await editor.send({"id": 2, "method": "session/new", "params": params})
    session_id = (await answer(messages, 2))["sessionId"]
    await manager.suspend_session(session_id, principal="alice")
    params = {"sessionId": session_id, "prompt": [{"type": "text", "text": "say never"}]}
    await editor.send({"id": 3, "method": "session/prompt", "params": params})
    await editor.send({"method": "session/cancel", "params": {"sessionId": session_id}})
    assert await answer(messages, 3) == {"stopReason": "cancelled"}
    assert (await manager.get_session(session_id)).turn == 0
    params["prompt"][0]["text"] = "say something"
    await editor.send({"id": 4, "method": "session/prompt", "params": params})
    assert await answer(messages, 4) == {"stopReason": "end_turn"}
    await manager.close_session(session_id, principal="alice")
