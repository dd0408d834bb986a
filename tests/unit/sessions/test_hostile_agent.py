"""What an agent may try by the lines that it writes; the session-host of all sessions goes on."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.agent_host import AgentHostBox
from support.sessions_lab import open_manager, opened, prompted, sessions_box, updates

from agentbox.sessions.agent_messages import MAX_REQUESTS, MAX_SETTING
from agentbox.sessions.lines import MAX_DEPTH
from agentbox.sessions.manager import SessionManager
from agentbox.sessions.permissions import MAX_AN_HOUR, MAX_WAITING

NOTHING = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}'


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


def update(members: str) -> str:
    return NOTHING % members


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (update('{"sessionUpdate":"x","n":1e999}'), '"n":1e999'),
        (update('{"sessionUpdate":"x","n":NaN}'), '"n":NaN'),
        (update(f'{{"sessionUpdate":"x","n":{"[" * 2000}{"]" * 2000}}}'), '"n":[[['),
        (update(f'{{"sessionUpdate":"x","n":{"[" * MAX_DEPTH}{"]" * MAX_DEPTH}}}'), '"n":[[['),
        (update('{"sessionUpdate":"agent_message_chunk","content":7}'), '"content":7'),
        ('{"id":[1],"method":"fs/read_text_file"}', '"id":[1]'),
        (f'{{"id":"{"i" * 300}","method":"_vendor/ask"}}', '"id":"iii'),
        ('{"jsonrpc":"2.0","method":"_vendor/told","params":[1]}', '"params":[1]'),
        ("[]", "[]"),
    ],
    ids=["infinity", "nan", "deepest", "deep", "schema", "list-id", "long-id", "params", "array"],
)
async def test_a_line_that_is_no_acp_ends_its_session(
    manager: SessionManager, line: str, shown: str
) -> None:
    """With its first 200 bytes; the prompt has an error."""
    session_id = await opened(manager)
    result = await prompted(manager, session_id, f"say before\nraw {line}\nsleep 60")
    assert (result.stop_reason, result.text) == ("cancelled", "before\n")
    session = await manager.get_session(session_id)
    assert session.state == "failed"
    assert session.reason.startswith("acp-invalid: ")
    assert shown in session.reason
    assert len(session.reason) <= len("acp-invalid: ") + 200


async def test_halves_of_characters_are_text_that_can_be_kept(manager: SessionManager) -> None:
    """An agent of JavaScript cuts texts between the halves of a pair."""
    session_id = await opened(manager)
    content = '{"type":"text","text":"a\\ud83d|\\udc00b \\ud83d\\ude00 %s"}'
    chunk = f'{{"sessionUpdate":"agent_message_chunk","content":{content}}}'
    title = update('{"sessionUpdate":"session_info_update","title":"\\ud83d"}')
    result = await prompted(
        manager,
        session_id,
        f"raw {title}\nraw {update(chunk % '')}\nraw {update(chunk % ('x' * 40000))}",
    )
    assert result.stop_reason == "end_turn"
    assert result.text.startswith("a\ufffd|\ufffdb \U0001f600 ")
    assert result.text.endswith("x" * 40000)
    await manager.close_session(session_id, principal="alice")


@pytest.mark.limit("agent_settings")
async def test_settings_of_an_agent_do_not_swell_its_row(manager: SessionManager) -> None:
    """They pass as updates; what a later client is told of them is bounded."""
    session_id = await opened(manager)
    command = {"name": "x", "description": "y" * MAX_SETTING}
    change = {"sessionUpdate": "available_commands_update", "availableCommands": [command]}
    await prompted(manager, session_id, f"raw {update(json.dumps(change))}")
    assert await updates(manager, session_id) == [change]
    assert (await manager.get_session(session_id)).commands == ()
    await manager.close_session(session_id, principal="alice")


@pytest.mark.limit("agent_requests")
async def test_requests_that_wait_are_bounded(manager: SessionManager) -> None:
    """Those beyond have an error, so that the agent can go on."""
    session_id = await opened(manager)
    params = '{"sessionId":"s","command":"sleep","args":["30"]}'
    line = f'{{"jsonrpc":"2.0","id":"r%d","method":"terminal/create","params":{params}}}'
    await prompted(manager, session_id, f"raws {MAX_REQUESTS * 3} {line}\nsay still here")
    session = manager.find(session_id)
    assert len(session.requests) <= MAX_REQUESTS
    assert (await prompted(manager, session_id, "say and here")).text == "and here\n"
    await manager.close_session(session_id, principal="alice")


@pytest.mark.limit("permissions_waiting")
@pytest.mark.limit("permissions_an_hour")
async def test_questions_that_wait_are_bounded(manager: SessionManager) -> None:
    """Eight wait for a client and sixty an hour are asked; the others are rejected."""
    session_id = await opened(manager)
    session = manager.find(session_id)
    session.readers += 1  # somebody could answer
    tool = '{"toolCallId":"t","title":"t","kind":"edit"}'
    options = '[{"optionId":"no","name":"No","kind":"reject_once"}]'
    params = f'{{"sessionId":"s","toolCall":{tool},"options":{options}}}'
    line = f'{{"id":"%s%%d","method":"session/request_permission","params":{params}}}'
    await prompted(manager, session_id, f"raws 20 {line % 'p'}\nsay asked")
    waiting = (await manager.get_session(session_id)).permissions
    assert len(waiting) == MAX_WAITING
    for asked in range(MAX_WAITING, MAX_AN_HOUR, MAX_WAITING):
        for permission in (await manager.get_session(session_id)).permissions:
            await manager.decide_permission(
                session_id, permission.permission_id, option_id="no", principal="alice"
            )
        await prompted(manager, session_id, f"raws 8 {line % f'q{asked}-'}\nsay asked")
    assert len(session.stored.asked) == MAX_AN_HOUR
    assert len((await manager.get_session(session_id)).permissions) == MAX_AN_HOUR % MAX_WAITING
    await manager.close_session(session_id, principal="alice")


async def test_other_sessions_are_not_named(manager: SessionManager) -> None:
    """Whatever session an update names, it is one of the agent's own."""
    victim, attacker = await opened(manager), await opened(manager)
    content = '{"type":"text","text":"forged"}'
    change = f'{{"sessionUpdate":"agent_message_chunk","content":{content}}}'
    line = f'{{"method":"session/update","params":{{"sessionId":"{victim}","update":{change}}}}}'
    assert (await prompted(manager, attacker, f"raw {line}")).text == "forged"
    assert await updates(manager, victim) == []
    for session_id in (victim, attacker):
        await manager.close_session(session_id, principal="alice")
