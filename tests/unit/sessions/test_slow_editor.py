"""An editor that reads too slowly: what waits for it is bounded, and it gets all that was said."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_host import AgentHostBox
from support.sessions_lab import Editor, open_manager, prompted, sessions_box, updates

from agentbox.core.slot_errors import CursorExpired
from agentbox.sessions import editor_connection, editors
from agentbox.sessions.coalescing import joined
from agentbox.sessions.manager import SessionManager
from agentbox.sessions.store import Changes


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


def said(message: dict[str, Any]) -> str:
    update = message["params"]["update"] if message.get("method") == "session/update" else {}
    text = str(update["content"]["text"]) if "content" in update else ""
    return "" if text.startswith("\n[agentbox] ") else text


async def test_updates_coalesce(manager: SessionManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than are kept; also by a reader that goes on amid the flood."""
    monkeypatch.setattr(editor_connection, "KEPT_FRAMES", 512)
    editor = Editor(manager)
    messages = editor.receive()
    begun = asyncio.ensure_future(anext(messages))
    while editor.connection_id not in manager.editors.connections:
        await asyncio.sleep(0)
    params: dict[str, Any] = {"cwd": "/workspace", "mcpServers": []}
    await editor.send({"id": 1, "method": "session/new", "params": params})
    message, count, text = await begun, 1600, ""
    while message.get("id") != 1:
        message = await anext(messages)
    session_id = message["result"]["sessionId"]
    flood = asyncio.ensure_future(prompted(manager, session_id, f"burst {count}"))
    while not text:
        text = said(await anext(messages))
    async with asyncio.timeout(30):
        while manager.find(session_id).stored.updates < count // 2:  # it does not read meanwhile
            await manager.find(session_id).wait()
        for _ in range(100):
            text += said(await anext(messages))
        result = await flood
        while not text.endswith(f" {count - 1} "):
            text += said(await anext(messages))
    assert text == result.text == "".join(f"{n} " for n in range(count))
    assert len(editor.messages) < count * 3 // 4
    assert len(await updates(manager, session_id)) == count  # the transcript has each
    await manager.close_session(session_id, principal="alice")


async def test_one_that_missed_messages_is_told(
    manager: SessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages that cannot be joined, more of them than are kept: an error, after which the editor
    connects anew. It waited without end before.
    """
    for module in (editor_connection, editors):
        monkeypatch.setattr(module, "KEPT_FRAMES", 64)
    editor = Editor(manager)
    messages = editor.receive()
    begun = asyncio.ensure_future(anext(messages))
    while editor.connection_id not in manager.editors.connections:
        await asyncio.sleep(0)
    await editor.send({"id": 1, "method": "session/list", "params": {}})
    await begun
    changes = Changes()
    for number in range(400):
        connection = manager.editors.find(editor.connection_id)
        connection.send(changes, {"method": "_test/number", "params": {"number": number}})
    await manager.store.commit(changes)
    manager.editors.wake()
    with pytest.raises(CursorExpired, match="cannot go on after message"):
        await asyncio.wait_for(_read_all(messages), 10)


async def _read_all(messages: AsyncIterator[dict[str, Any]]) -> None:
    async for _ in messages:
        pass


CALL = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "pending"}
TEXT = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}}


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (CALL, {**CALL, "title": "x"}, {**CALL, "title": "x"}),
        (CALL, {**CALL, "toolCallId": "2"}, None),
        (TEXT, TEXT, {**TEXT, "content": {"type": "text", "text": "aa"}}),
        ({**TEXT, "messageId": "1"}, TEXT, None),
        (TEXT, {**TEXT, "content": {"type": "image", "data": "", "mimeType": "x"}}, None),
        (TEXT, {**TEXT, "sessionUpdate": "agent_thought_chunk"}, None),
        (TEXT, {**TEXT, "content": {"type": "text", "text": "a" * 65536}}, None),
        ({"sessionUpdate": "of_tomorrow"}, {"sessionUpdate": "of_tomorrow"}, None),
        ({**CALL, "sessionUpdate": "tool_call"}, {**CALL, "sessionUpdate": "tool_call"}, None),
    ],
)
def test_what_can_be_joined(
    first: dict[str, Any], second: dict[str, Any], both: dict[str, Any] | None
) -> None:
    """Nothing is lost by it: no call of a tool, no kind that is not known."""
    told = joined({"sessionId": "s", "update": first}, {"sessionId": "s", "update": second})
    assert told == (None if both is None else {"sessionId": "s", "update": both})
    assert joined({"sessionId": "s", "update": TEXT}, {"sessionId": "t", "update": TEXT}) is None
