"""Programs are killed in each phase of a turn: the session goes on, and what an editor got is what
the transcript has, each update once.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import until
from support.acp_kills import PatientEditor, kill, told
from support.instructed_agent import SCRIPT
from support.session_box import SessionBox

from agentbox.client import every

MANIFEST = f"""
[acp]
cancel_seconds = 1

[agents.loader]
command = ["python3", "-c", {json.dumps(SCRIPT)}, "--load"]
protocol = "acp"
max_instances = 20
"""
COUNTED = "".join(f"{number} " for number in range(40))


@pytest.fixture(scope="module")
def box() -> Iterator[SessionBox]:
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    with SessionBox(folder, "", MANIFEST, {}) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def editor(box: SessionBox) -> Iterator[PatientEditor]:
    with PatientEditor(box.words("acp", "--agent", "loader"), box.environment()) as connected:
        yield connected


@pytest.fixture
def session(box: SessionBox, editor: PatientEditor) -> Iterator[str]:
    opened = editor.open_session(box.paths.workspace)
    editor.clear()
    editor.asked.clear()
    yield opened
    for one in every(box.client.sessions.list):
        if one.state not in ("closed", "failed"):
            box.client.sessions.close(one.session_id)


def goes_on(box: SessionBox, editor: PatientEditor, session: str, before: str) -> None:
    """The session has a further turn; the editor has what the transcript has."""
    assert editor.prompt(session, "say and on") == "end_turn"
    assert editor.text() == f"{before}and on\n"
    assert told(box, session) == editor.text()


def test_session_host_amid_updates(box: SessionBox, editor: PatientEditor, session: str) -> None:
    """The agent goes on meanwhile; twice."""
    turn = editor.start_prompt(session, "slow 40")
    for seen in (5, 15):
        until(lambda seen=seen: len(editor.updates) > seen)
        kill(box, "session-host")
    assert editor.wait(turn)["result"]["stopReason"] == "end_turn"
    goes_on(box, editor, session, COUNTED)


def test_session_host_while_a_question_waits(
    box: SessionBox, editor: PatientEditor, session: str
) -> None:
    """It is not asked again; the answer is that of before."""
    turn = editor.start_prompt(session, "say before\nask edit")
    until(lambda: editor.asked)
    kill(box, "session-host")
    editor.answer_now()
    assert editor.wait(turn)["result"]["stopReason"] == "end_turn"
    assert len(editor.asked) == 1
    outcome = '{"outcome": "selected", "optionId": "yes"}'
    goes_on(box, editor, session, f"before\n{outcome}\n")


def test_session_host_while_a_turn_is_cancelled(
    box: SessionBox, editor: PatientEditor, session: str
) -> None:
    """The agent does not hear of it; its program is ended, and the client has its reason."""
    turn = editor.start_prompt(session, "say before\ndeaf")
    until(lambda: editor.text() == "before\n")
    editor.notify("session/cancel", sessionId=session)
    kill(box, "session-host")
    assert editor.wait(turn)["result"]["stopReason"] == "cancelled"
    goes_on(box, editor, session, "before\n")


def test_session_host_amid_a_request_of_the_agent(
    box: SessionBox, editor: PatientEditor, session: str
) -> None:
    """A terminal is made once, and its end is waited for again."""
    turn = editor.start_prompt(session, "say before\nrun echo x >> runs; sleep 2; cat runs")
    until(lambda: editor.text() == "before\n")
    kill(box, "session-host")
    assert editor.wait(turn)["result"]["stopReason"] == "end_turn"
    goes_on(box, editor, session, "before\nx exit 0\n")


@pytest.mark.sampled(9, each=("phase",))
@pytest.mark.parametrize("victim", ["agent", "agent-host"])
@pytest.mark.parametrize("phase", ["updates", "question", "request", "cancel", "between"])
def test_an_agent_comes_back(
    box: SessionBox, editor: PatientEditor, session: str, victim: str, phase: str
) -> None:
    """The turn has an end, and the next one a new program of the agent."""
    words = {"question": "ask edit", "request": "run sleep 60", "cancel": "deaf"}
    if phase == "between":
        assert editor.prompt(session, "say before") == "end_turn"
        kill(box, victim)
        until(lambda: box.client.sessions.show(session).state == "suspended")
    else:
        turn = editor.start_prompt(session, f"say before\n{words.get(phase, 'sleep 60')}")
        until(lambda: editor.text() == "before\n")
        until(lambda: phase != "question" or editor.asked)
        if phase == "cancel":
            editor.notify("session/cancel", sessionId=session)
            editor.call("session/list")  # answered after the cancellation was heard
        kill(box, victim)
        answer = editor.wait(turn)
        if phase == "cancel":
            assert answer["result"]["stopReason"] == "cancelled"
        else:
            assert answer["error"]["data"]["kind"] == "agent-ended"
    goes_on(box, editor, session, "before\n")
    assert box.client.sessions.show(session).generation == 2


@pytest.mark.parametrize("victim", ["session-host", "api"])
def test_between_turns(box: SessionBox, editor: PatientEditor, session: str, victim: str) -> None:
    """The agent does not notice."""
    assert editor.prompt(session, "say before") == "end_turn"
    kill(box, victim)
    goes_on(box, editor, session, "before\n")
    assert box.client.sessions.show(session).generation == 1


@pytest.mark.parametrize("phase", ["question", "request", "cancel"])
def test_the_api_amid_a_turn(
    box: SessionBox, editor: PatientEditor, session: str, phase: str
) -> None:
    """Neither editor nor agent notices."""
    words = {"question": "ask edit", "request": "run echo x >> runs; sleep 2; cat runs"}
    said = {
        "question": '{"outcome": "selected", "optionId": "yes"}\n',
        "request": "x exit 0\n",
        "cancel": "",
    }
    turn = editor.start_prompt(session, f"say before\n{words.get(phase, 'sleep 60')}")
    until(lambda: editor.text() == "before\n")
    until(lambda: phase != "question" or editor.asked)
    kill(box, "api")
    if phase == "question":
        editor.answer_now()
    elif phase == "cancel":
        editor.notify("session/cancel", sessionId=session)
    reason = "cancelled" if phase == "cancel" else "end_turn"
    assert editor.wait(turn)["result"]["stopReason"] == reason
    assert len(editor.asked) == (phase == "question")
    goes_on(box, editor, session, f"before\n{said[phase]}")
    assert box.client.sessions.show(session).generation == 1
