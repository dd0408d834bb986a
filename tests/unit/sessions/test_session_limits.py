"""Bounds of sessions that the manifest sets; another session is not affected."""

import dataclasses
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_host import AgentHostBox
from support.sessions_lab import open_manager, opened, prompted, sessions_box, sessions_config

from agentbox.contracts.sessions import NewSession
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import SessionsFull, UnknownSession
from agentbox.sessions import creation, ended, upkeep
from agentbox.sessions.environment import SessionsConfig
from agentbox.sessions.manager import SessionManager


class Settings:
    """Values in force, which a test changes."""

    def __init__(self, config: SessionsConfig) -> None:
        self._config = config

    def __call__(self) -> SessionsConfig:
        return self._config

    def change(self, **settings: Any) -> None:
        """Of the table [acp]."""
        acp = dataclasses.replace(self._config.acp, **settings)
        self._config = dataclasses.replace(self._config, acp=acp)

    def change_agent(self, **settings: Any) -> None:
        """Of [agents.coder.acp]."""
        coder = self._config.agents["coder"]
        acp = dataclasses.replace(coder.acp, **settings)
        agents = {**self._config.agents, "coder": dataclasses.replace(coder, acp=acp)}
        self._config = dataclasses.replace(self._config, agents=agents)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = sessions_box(tmp_path_factory.mktemp("box"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def settings(box: AgentHostBox) -> Settings:
    return Settings(sessions_config(box))


@pytest.fixture
async def manager(
    box: AgentHostBox, tmp_path: Path, settings: Settings
) -> AsyncIterator[SessionManager]:
    async with open_manager(box, tmp_path / "sessions", settings) as made:
        yield made
        for stored in list(made.stored_sessions()):
            await made.close_session(stored.session_id, principal="alice")


@pytest.mark.limit("max_sessions")
@pytest.mark.limit("max_suspended")
async def test_number_of_sessions(manager: SessionManager, settings: Settings) -> None:
    """A suspended one does not count as running; of those, the oldest is closed."""
    settings.change(max_sessions=1, max_suspended=1)
    first = await opened(manager)
    with pytest.raises(SessionsFull, match="1 of at most 1 run"):
        await opened(manager)
    await manager.suspend_session(first, principal="alice")
    second = await opened(manager)
    with pytest.raises(SessionsFull):
        await manager.resume_session(first, principal="alice")
    await manager.suspend_session(second, principal="alice")
    await manager.upkeep.sweep()
    states = [(await manager.get_session(one)).state for one in (first, second)]
    assert states == ["closed", "suspended"]


@pytest.mark.limit("max_message")
async def test_a_line_has_its_most(manager: SessionManager, settings: Settings) -> None:
    """Also one that never ends."""
    settings.change(max_message=100_000)
    victim, other = await opened(manager), await opened(manager)
    result = await prompted(manager, victim, "endless")
    assert result.stop_reason == "cancelled"
    shown = await manager.get_session(victim)
    assert (shown.state, shown.reason) == ("failed", f"acp-invalid: {'x' * 200}")
    assert (await prompted(manager, other, "say on")).text == "on\n"


@pytest.mark.limit("turn_seconds")
async def test_a_turn_has_its_time(manager: SessionManager, settings: Settings) -> None:
    """A deaf agent is ended; the client is told why."""
    settings.change_agent(turn_seconds=0.2)
    settings.change(cancel_seconds=0.2)
    session_id = await opened(manager)
    assert (await prompted(manager, session_id, "sleep 60")).stop_reason == "cancelled"
    assert (await prompted(manager, session_id, "deaf")).stop_reason == "cancelled"
    items = (await manager.read_transcript(session_id, since=0, limit=100)).items
    notices = [item.data["text"] for item in items if item.kind == "notice"]
    assert notices == ["the turn took longer than 0.2 s, and is cancelled"] * 2


@pytest.mark.limit("idle_suspend_seconds")
@pytest.mark.limit("keep_days")
async def test_an_idle_session_is_suspended(manager: SessionManager, settings: Settings) -> None:
    """Not one that somebody watches; one that is kept too long is closed, and then forgotten once
    the journal has what happened in it."""
    session_id, watched = await opened(manager), await opened(manager)
    await prompted(manager, session_id, f"say {'o' * 50_000}")
    manager.find(watched).readers += 1
    settings.change_agent(idle_suspend_seconds=0.001)
    await manager.upkeep.sweep()
    assert (await manager.get_session(session_id)).state == "suspended"
    assert (await manager.get_session(watched)).state == "idle"
    settings.change_agent(keep_days=0)
    await manager.upkeep.sweep()
    assert (await manager.get_session(session_id)).state == "closed"
    await manager.upkeep.sweep()
    assert (await manager.get_session(session_id)).state == "closed"
    while lines := await manager.read_record(0, wait_s=0):
        await manager.read_record(lines[-1].seq, wait_s=0)
    await manager.upkeep.sweep()
    with pytest.raises(UnknownSession):
        await manager.get_session(session_id)
    assert await stored_rows(manager, session_id) == 0
    assert await count(manager, "bodies") == 0
    assert (await prompted(manager, watched, "say on")).text == "on\n"


async def stored_rows(manager: SessionManager, session_id: str) -> int:
    """In all tables that have rows of sessions."""
    tables = ("items", "outbox", "calls", "requests", "once", "sessions")
    return sum([await count(manager, one, session_id) for one in tables])


async def count(manager: SessionManager, table: str, session_id: str = "") -> int:
    where = " WHERE session_id = ?" if session_id else ""
    values = (session_id,) if session_id else ()
    rows = await manager.store._rows(f"SELECT count(*) FROM {table}{where}", *values)
    return int(rows[0][0])


@pytest.mark.limit("ended_sessions")
async def test_ended_sessions_have_a_number(
    manager: SessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest ones stay."""
    monkeypatch.setattr(ended, "MAX_ENDED", 1)
    first, second, other = [await opened(manager) for _ in range(3)]
    for session_id in (first, second):
        await manager.close_session(session_id, principal="alice")
    while lines := await manager.read_record(0, wait_s=0):
        await manager.read_record(lines[-1].seq, wait_s=0)
    await manager.upkeep.sweep()
    left = [one.session_id for one in (await manager.list_sessions(limit=10, cursor=None)).items]
    assert left == [second, other]
    assert (await prompted(manager, other, "say on")).text == "on\n"


@pytest.mark.limit("session_items")
async def test_a_transcript_has_a_number_of_items(
    manager: SessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over it, the session is closed."""
    monkeypatch.setattr(upkeep, "MAX_ITEMS", 50)
    victim, other = await opened(manager), await opened(manager)
    await prompted(manager, victim, "burst 50")
    await manager.upkeep.sweep()
    assert (await manager.get_session(victim)).state == "closed"
    assert (await prompted(manager, other, "say on")).text == "on\n"


@pytest.mark.limit("repeated_prompts")
async def test_repeated_calls_are_known_for_a_while(
    manager: SessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That which made the session always, and those of the newest turns, which are not done again."""
    monkeypatch.setattr(creation, "MAX_REPEATED", 2)
    new, request_id = NewSession(agent="coder"), uuid7()
    made = await manager.create_session(new, request_id=request_id, principal="alice")

    async def prompt(number: int) -> str:
        done = await manager.prompt_session(
            made.session_id,
            f"say {number}",
            request_id=f"request-{number}",
            principal="alice",
            wait_s=20,
        )
        return done.text

    assert [await prompt(n) for n in range(4)] == [f"{n}\n" for n in range(4)]
    assert await count(manager, "once", made.session_id) == 3
    again = await manager.create_session(new, request_id=request_id, principal="alice")
    assert again.session_id == made.session_id
    assert await prompt(3) == "3\n"
    assert (await manager.get_session(made.session_id)).turn == 4
