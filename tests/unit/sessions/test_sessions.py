"""Sessions with a scripted agent on a real agent-host."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.agent_host import AgentHostBox
from support.sessions_lab import open_manager, opened, prompted, sessions_box

from agentbox.core.slot_errors import SessionBusy, ValidationError
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


async def test_a_turn_says_what_the_agent_said(manager: SessionManager) -> None:
    """All of it, in order."""
    session_id = await opened(manager)
    result = await prompted(manager, session_id, "say hello\nburst 100\nsay end")
    expected = "hello\n" + "".join(f"{n} " for n in range(100)) + "end\n"
    assert (result.stop_reason, result.text) == ("end_turn", expected)
    shown = await manager.get_session(session_id)
    assert (shown.state, shown.turn, shown.usage.updates) == ("idle", 1, 102)
    await manager.close_session(session_id, principal="alice")


async def test_files_and_terminals_are_those_of_the_branch(
    manager: SessionManager, box: AgentHostBox
) -> None:
    """Nothing of them is in the workspace; a path that leaves the branch is refused."""
    (box.paths.workspace / "old").write_text("of the workspace\n")
    session_id = await opened(manager)
    told = await prompted(
        manager,
        session_id,
        "read old\nwrite new.txt made by a call\nread new.txt\nread ../secret\nrun cat new.txt; exit 3",
    )
    lines = told.text.splitlines()
    assert lines[0] == '{"content": "of the workspace\\n"}'
    assert lines[1:3] == ["{}", '{"content": "made by a call"}']
    assert lines[3] == "\"cannot use 'workspace/../secret': it must lead into workspace/ or tmp/\""
    assert lines[4] == "made by a call exit 3"
    assert not (box.paths.workspace / "new.txt").exists()
    closed = await manager.close_session(session_id, principal="alice")
    assert closed.state == "closed"


async def test_without_a_client_permissions_are_denied(manager: SessionManager) -> None:
    """The agent has an answer at once."""
    session_id = await opened(manager)
    told = await prompted(manager, session_id, "ask edit")
    assert told.text == '{"outcome": "selected", "optionId": "no"}\n'
    await manager.close_session(session_id, principal="alice")


async def test_a_cancelled_turn_ends(manager: SessionManager) -> None:
    """And the next one begins."""
    session_id = await opened(manager)
    turn = asyncio.create_task(prompted(manager, session_id, "say begun\nsleep 60\nsay never"))
    async for item in manager.stream_session(session_id, since=0, follow=True):
        if item.kind == "update":
            break
    with pytest.raises(SessionBusy, match="it is busy"):
        await prompted(manager, session_id, "say too early")
    await manager.cancel_session(session_id, principal="alice")
    result = await turn
    assert (result.stop_reason, result.text) == ("cancelled", "begun\n")
    assert (await prompted(manager, session_id, "say on")).text == "on\n"
    await manager.close_session(session_id, principal="alice")


async def test_a_deaf_agent_is_ended_and_resumed(manager: SessionManager) -> None:
    """What it loads is not in the transcript again."""
    session_id = await opened(manager, "loader")
    turn = asyncio.create_task(prompted(manager, session_id, "say begun\ndeaf"))
    async for item in manager.stream_session(session_id, since=0, follow=True):
        if item.kind == "update":
            break
    await manager.cancel_session(session_id, principal="alice")
    assert (await turn).stop_reason == "cancelled"
    assert (await prompted(manager, session_id, "say again")).text == "again\n"
    shown = await manager.get_session(session_id)
    assert (shown.generation, shown.turn) == (2, 2)
    said = [
        item.data["content"]["text"]
        async for item in manager.stream_session(session_id, since=0, follow=False)
        if item.kind == "update"
    ]
    assert said == ["begun\n", "again\n"]  # what it loaded is not in the transcript again
    await manager.close_session(session_id, principal="alice")


async def test_an_agent_that_cannot_load_gets_the_transcript(manager: SessionManager) -> None:
    """As a resource that is marked as history."""
    session_id = await opened(manager)
    await prompted(manager, session_id, "say something to remember")
    suspended = await manager.suspend_session(session_id, principal="alice")
    assert suspended.state == "suspended"
    told = await prompted(manager, session_id, "say on")
    assert told.text.startswith("history of ")
    assert told.text.endswith("on\n")
    await manager.close_session(session_id, principal="alice")


async def test_an_end_is_told_with_its_last_words(manager: SessionManager) -> None:
    """Its standard error is in the reason."""
    session_id = await opened(manager)
    result = await prompted(manager, session_id, "say before\ndie 3")
    assert result.text == "before\n"
    shown = await manager.get_session(session_id)
    assert (shown.state, "last words" in shown.reason) == ("suspended", True)
    await manager.close_session(session_id, principal="alice")


async def test_what_is_no_acp_ends_the_session(manager: SessionManager) -> None:
    """Its line is told escaped."""
    session_id = await opened(manager)
    await prompted(manager, session_id, "garbage")
    shown = await manager.get_session(session_id)
    assert shown.state == "failed"
    assert shown.reason == "acp-invalid: Welcome to \\x1b[1mthe agent"


async def test_what_the_protocol_does_not_know_passes(manager: SessionManager) -> None:
    """As it is."""
    session_id = await opened(manager)
    await prompted(manager, session_id, "unknown")
    updates = [
        item.data
        async for item in manager.stream_session(session_id, since=0, follow=False)
        if item.kind == "update"
    ]
    assert updates == [{"sessionUpdate": "of_tomorrow", "x": [1, {"y": None}]}]
    await manager.close_session(session_id, principal="alice")


async def test_a_wrong_agent_is_named(manager: SessionManager) -> None:
    """So is a missing one, where there are several."""
    with pytest.raises(ValidationError, match="agents that speak ACP are coder, loader"):
        await opened(manager, "painter")
    with pytest.raises(ValidationError, match="agents that speak ACP are"):
        await opened(manager, "")
