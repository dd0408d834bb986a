"""Bodies of a transcript go, the record that they were stays."""

import dataclasses
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_host import AgentHostBox
from support.sessions_lab import open_manager, opened, prompted, sessions_box, sessions_config

from agentbox.contracts.sessions import SessionItem
from agentbox.sessions import transcript_bounds
from agentbox.sessions.environment import SessionsConfig
from agentbox.sessions.manager import SessionManager
from agentbox.sessions.transcript_bounds import drop_bodies


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


def with_settings(box: AgentHostBox, **settings: Any) -> SessionsConfig:
    config = sessions_config(box)
    coder = config.agents["coder"]
    changed = dataclasses.replace(coder, acp=dataclasses.replace(coder.acp, **settings))
    return dataclasses.replace(config, agents={**config.agents, "coder": changed})


async def items(manager: SessionManager, session_id: str) -> list[SessionItem]:
    return list((await manager.read_transcript(session_id, since=0, limit=500)).items)


@pytest.mark.limit("max_transcript")
async def test_over_its_bound_the_oldest_goes(manager: SessionManager, box: AgentHostBox) -> None:
    """A body that is kept apart too; the newest words stay, and nothing is renumbered."""
    session_id = await opened(manager)
    session = manager.find(session_id)
    await prompted(manager, session_id, f"say {'o' * 50000}\nsay old\nburst 20")
    await prompted(manager, session_id, "say newest")
    whole = await items(manager, session_id)
    bound = session.stored.text_bytes - 50_000
    session.environment.config = lambda: with_settings(box, max_transcript=bound)
    before = session.stored.updated_at
    await drop_bodies(session)
    left = await items(manager, session_id)
    assert session.stored.text_bytes <= bound
    assert session.stored.updated_at == before
    assert [(one.cursor, one.kind, one.turn) for one in left] == [
        (one.cursor, one.kind, one.turn) for one in whole
    ]
    gone = [one for one in left if one.dropped]
    assert gone[-1].cursor < left[-1].cursor
    (large,) = [one for one in gone if int(str(one.data["size"])) > 50_000 and one.kind == "update"]
    assert large.data["sessionUpdate"] == "agent_message_chunk"
    assert "content" not in large.data
    assert large.digest == next(one.digest for one in whole if one.cursor == large.cursor)
    assert any("newest" in str(one.data) for one in left)
    await manager.close_session(session_id, principal="alice")


async def test_a_digest_keeps_no_text(
    manager: SessionManager, box: AgentHostBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kinds, sizes and hashes only; the session goes on."""
    session_id = await opened(manager)
    session = manager.find(session_id)
    session.environment.config = lambda: with_settings(box, transcript="digest")
    await prompted(manager, session_id, "say private words")
    await drop_bodies(session)
    assert "private words" in str(await items(manager, session_id))  # of this minute
    monkeypatch.setattr(transcript_bounds, "KEPT_SECONDS", -1)
    await drop_bodies(session)
    left = await items(manager, session_id)
    assert "private words" not in str(left)
    (update,) = [one for one in left if one.kind == "update"]
    assert update.dropped
    assert len(update.digest) == 64
    assert (await prompted(manager, session_id, "say on")).text == "on\n"
    await manager.close_session(session_id, principal="alice")
