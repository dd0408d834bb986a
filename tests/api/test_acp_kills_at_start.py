"""Programs are killed while an agent starts: in `initialize` and `session/new` of a session that
is opened, in `session/load` and `session/resume` of one that goes on.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from helpers import until
from support.acp_kills import VICTIMS, PatientEditor, kill, told
from support.instructed_agent import SCRIPT
from support.session_box import SessionBox

from agentbox.client import ApiError, every

MANIFEST = "".join(
    f"""
[agents.{name}]
command = ["python3", "-c", {json.dumps(SCRIPT)}, "--{name}"]
protocol = "acp"
max_instances = 40
"""
    for name in ("load", "resume")
)


@pytest.fixture(scope="module")
def box() -> Iterator[SessionBox]:
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    with SessionBox(folder, "", MANIFEST, {}) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def editors(box: SessionBox) -> Iterator[dict[str, PatientEditor]]:
    """By the table that they work with."""

    def connect(name: str) -> PatientEditor:
        return PatientEditor(box.words("acp", "--agent", name), box.environment())

    with connect("load") as load, connect("resume") as resume:
        load.initialize()
        resume.initialize()
        yield {"load": load, "resume": resume}


@pytest.fixture(autouse=True)
def _clean(box: SessionBox, editors: dict[str, PatientEditor]) -> Iterator[None]:
    """After a test nothing runs: no agent was started that its session does not know."""
    yield
    for name in ("hold", "go"):
        (box.paths.workspace / name).unlink(missing_ok=True)
    until(lambda: is_served(box))
    for one in every(box.client.sessions.list):
        if one.state not in ("closed", "failed"):
            box.client.sessions.close(one.session_id)
    until(lambda: not unended(box))
    for review in box.client.reviews.list().items:
        box.client.reviews.discard(review.agent_id)
    for editor in editors.values():
        editor.clear()


def is_served(box: SessionBox) -> bool:
    """Whether the API has found agent-host again, after one of them was killed."""
    try:
        box.client.agents.list()
    except ApiError as error:
        if not error.retryable:
            raise
        return False
    return True


def unended(box: SessionBox) -> list[str]:
    """Sandboxes of sessions that are not over."""
    return [one.agent_id for one in every(box.client.agents.list) if one.exit is None]


def held(box: SessionBox) -> list[Path]:
    """Branches whose agent waits."""
    return [path.parent for path in box.paths.branches.glob("*/work/held")]


@pytest.mark.sampled(9, each=("victim",))
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("method", ["initialize", "session/new"])
def test_while_a_session_is_opened(
    box: SessionBox, editors: dict[str, PatientEditor], method: str, victim: str
) -> None:
    """The editor gets its one session; where the agent was ended, it is told so, and the next one
    opens."""
    editor, folder = editors["load"], str(box.paths.workspace)
    before = [one.session_id for one in every(box.client.sessions.list)]
    (box.paths.workspace / "hold").write_text(method)
    opening = editor.start("session/new", cwd=folder, mcpServers=[])
    until(lambda: held(box))
    (branch,) = held(box)
    kill(box, victim)
    with suppress(FileNotFoundError):  # the branch of an agent that was ended may be gone
        (branch / "go").touch()
    answer = editor.wait(opening)
    made = [one for one in every(box.client.sessions.list) if one.session_id not in before]
    assert len(made) == 1
    if victim in ("agent", "agent-host"):
        assert answer["error"]["data"]["kind"] == "agent-ended"
        assert made[0].state == "failed"
        (box.paths.workspace / "hold").unlink()
        answer = editor.call("session/new", cwd=folder, mcpServers=[])
    session = answer["result"]["sessionId"]
    assert editor.prompt(session, "say and on") == "end_turn"
    assert editor.text() == told(box, session) == "and on\n"


@pytest.mark.sampled(9, each=("victim",))
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("method", ["initialize", "session/load", "session/resume"])
def test_while_a_session_is_resumed(
    box: SessionBox, editors: dict[str, PatientEditor], method: str, victim: str
) -> None:
    """By a prompt, which is done once or answered with an error; nothing of what was said is lost
    or comes twice."""
    editor = editors["resume" if method == "session/resume" else "load"]
    answer = editor.call("session/new", cwd=str(box.paths.workspace), mcpServers=[])
    session = answer["result"]["sessionId"]
    assert editor.prompt(session, f"say before\nrun printf {method} > hold") == "end_turn"
    said = editor.text()
    box.client.sessions.suspend(session)
    turn = editor.start_prompt(session, "say once")
    until(lambda: held(box))
    (branch,) = held(box)
    kill(box, victim)
    (branch / "go").touch()
    answer = editor.wait(turn)
    if victim in ("agent", "agent-host"):
        assert answer["error"]["data"]["kind"] == "agent-ended"
        assert box.client.sessions.show(session).state == "suspended"
    else:
        assert answer["result"]["stopReason"] == "end_turn"
        said += "once\n"
    assert editor.prompt(session, "say and on") == "end_turn"
    assert editor.text() == told(box, session) == f"{said}and on\n"
    kinds = [
        item.data["sessionUpdate"]
        for item in box.client.sessions.transcript(session, limit=500).items
        if item.kind == "update"
    ]
    assert "user_message_chunk" not in kinds


def test_session_host_while_an_editor_loads(
    box: SessionBox, editors: dict[str, PatientEditor]
) -> None:
    """The editor is told once what was said."""
    first = editors["load"]
    answer = first.call("session/new", cwd=str(box.paths.workspace), mcpServers=[])
    session = answer["result"]["sessionId"]
    assert first.prompt(session, "say before\nrun printf session/load > hold") == "end_turn"
    said = first.text()
    box.client.sessions.suspend(session)
    second, folder = editors["resume"], str(box.paths.workspace)
    loading = second.start("session/load", sessionId=session, cwd=folder, mcpServers=[])
    until(lambda: held(box))
    (branch,) = held(box)
    kill(box, "session-host")
    (branch / "go").touch()
    assert "result" in second.wait(loading)
    assert second.prompt(session, "say and on") == "end_turn"
    assert second.text() == f"{said}and on\n"
    prompts = [one for one in second.updates if one["sessionUpdate"] == "user_message_chunk"]
    assert len(prompts) == 1
