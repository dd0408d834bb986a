"""Editors of two callers at one session-host."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_host import AgentHostBox
from support.sessions_lab import Editor, open_manager, opened, prompted, sessions_box

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


async def test_another_caller_s_session_is_not_found(manager: SessionManager) -> None:
    """By no method that names one, nor in a list; its owner goes on undisturbed."""
    victim = await opened(manager)
    await prompted(manager, victim, "say secret words")
    editor = Editor(manager, principal="mallory")
    messages = editor.receive()
    where: dict[str, Any] = {"cwd": "/workspace", "mcpServers": []}
    named: dict[str, dict[str, Any]] = {
        "session/load": where,
        "session/resume": where,
        "session/prompt": {"prompt": [{"type": "text", "text": "say mine"}]},
        "session/close": {},
        "session/set_mode": {"modeId": "x"},
        "session/set_config_option": {"configId": "x", "value": "y"},
    }
    first = asyncio.ensure_future(anext(messages))
    while editor.connection_id not in manager.editors.connections:
        await asyncio.sleep(0)
    for number, (method, params) in enumerate(named.items(), 1):
        members = {**params, "sessionId": victim}
        await editor.send({"id": number, "method": method, "params": members})
        answer = await (first if number == 1 else anext(messages))
        assert answer["id"] == number
        assert answer["error"]["message"].startswith(("cannot find session", "cannot use session"))
    await editor.send({"method": "session/cancel", "params": {"sessionId": victim}})
    await editor.send({"id": 99, "method": "session/list", "params": {}})
    assert (await anext(messages))["result"] == {"sessions": []}
    assert "secret words" not in str(editor.messages)
    shown = await manager.get_session(victim)
    assert (shown.state, shown.turn) == ("idle", 1)
    await manager.close_session(victim, principal="alice")
