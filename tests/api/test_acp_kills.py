"""Programs are killed in each phase of a turn: the session goes on, and what an editor got is what
the transcript has, each update once.
"""

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import until
from support.acp_editor import AcpEditor
from support.instructed_agent import SCRIPT
from support.session_box import SessionBox

from agentbox.client import every
from agentbox.sandbox.launcher import tree

MANIFEST = f"""
[acp]
cancel_seconds = 1

[agents.loader]
command = ["python3", "-c", {json.dumps(SCRIPT)}, "--load"]
protocol = "acp"
max_instances = 20
"""
COUNTED = "".join(f"{number} " for number in range(40))


class PatientEditor(AcpEditor):
    """Its user answers questions when told to."""

    def _answer(self, message: Mapping[str, Any]) -> None:
        assert message["method"] == "session/request_permission"

    def answer_now(self) -> None:
        """The newest one."""
        super()._answer(self.asked[-1])


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


def kill(box: SessionBox, victim: str) -> None:
    """SIGKILL, and a new start as supervisord makes it."""
    host = box.api.host
    assert host is not None
    if victim == "session-host":
        box.kill_session_host()
        box.start_session_host()
    elif victim == "agent-host":
        host.kill()
        host.start()
    else:
        agents = [
            one.pid
            for one in tree.quick_descendants(host.pid)
            if Path(f"/proc/{one.pid}/cmdline").read_bytes().endswith(b"--load\0")
        ]
        assert agents
        for pid in agents:
            os.kill(pid, signal.SIGKILL)


def told(box: SessionBox, session: str) -> str:
    """What the agent said, by the transcript."""
    return "".join(
        item.data["content"]["text"]
        for item in box.client.sessions.transcript(session, limit=500).items
        if item.kind == "update" and item.data["sessionUpdate"] == "agent_message_chunk"
    )


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


@pytest.mark.parametrize("victim", ["agent", "agent-host"])
@pytest.mark.parametrize("phase", ["updates", "question", "between"])
def test_an_agent_comes_back(
    box: SessionBox, editor: PatientEditor, session: str, victim: str, phase: str
) -> None:
    """The turn has an end, and the next one a new program of the agent."""
    words = {"updates": "say before\nsleep 60", "question": "say before\nask edit"}
    if phase == "between":
        assert editor.prompt(session, "say before") == "end_turn"
        kill(box, victim)
        until(lambda: box.client.sessions.show(session).state == "suspended")
    else:
        turn = editor.start_prompt(session, words[phase])
        until(lambda: editor.text() == "before\n")
        until(lambda: phase != "question" or editor.asked)
        kill(box, victim)
        assert editor.wait(turn)["error"]["data"]["kind"] == "agent-ended"
    goes_on(box, editor, session, "before\n")
    assert box.client.sessions.show(session).generation == 2
