"""Approvals of the box in the dialogue of an editor."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import ask_approval, until
from support.acp_agent import SCRIPT
from support.acp_editor import AcpEditor
from support.session_box import SessionBox

from agentbox.core.slot_errors import PermissionDenied

MANIFEST = """
[agents.scripted]
command = ["python3", "agent.py"]
protocol = "acp"
"""


@pytest.fixture(scope="module")
def box() -> Iterator[SessionBox]:
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    with SessionBox(folder, "", MANIFEST, {}) as running:
        (running.paths.workspace / "agent.py").write_text(SCRIPT)
        yield running
    shutil.rmtree(folder)


def test_the_box_asks_in_the_editor(box: SessionBox) -> None:
    """By its own name, once for each use; what is not approved is denied."""
    with AcpEditor(box.words("acp"), box.environment()) as editor:
        session = editor.open_session(box.paths.workspace)
        agent = box.client.sessions.show(session).sandbox_id

        def asked(value: str) -> bool:
            """False until agent-host knows that an approver is connected."""
            try:
                ask_approval(box.api, agent, value)
            except PermissionDenied as error:
                if "no approver is connected" in error.message:
                    return False
                raise
            return True

        until(lambda: asked("pod/read"))
        question = editor.asked[-1]["params"]
        assert question["sessionId"] == session
        assert question["toolCall"]["toolCallId"].startswith("agentbox:")
        assert question["toolCall"]["title"] == "agentbox: approve tool pod/read?"
        assert [one["kind"] for one in question["options"]] == ["allow_once", "reject_once"]
        text = question["toolCall"]["content"][0]["content"]["text"]
        assert "Its words: “please\\u202e”" in text
        assert "\x1b" not in text
        editor.answer_with = "reject_once"
        with pytest.raises(PermissionDenied, match="answered in an editor"):
            ask_approval(box.api, agent, "pod/list")
    approvals = box.client.approvals.list().items
    assert [one.state for one in approvals if one.value == "pod/list"] == ["denied"]


def test_a_token_without_the_scope_is_not_asked(box: SessionBox) -> None:
    """An editor that may not decide is no approver."""
    weak = box.client.tokens.create("editor", ["agents:read", "agents:write"]).value
    environment = box.environment()
    path = box.operator / "weak"
    shutil.copytree(box.operator / "state", path)
    (path / "sessions-of-a-test" / "token").write_text(weak)
    record = path / "sessions-of-a-test" / "record.json"
    record.write_text(record.read_text().replace("/operator/state/", "/operator/weak/"))
    with AcpEditor(box.words("acp"), {**environment, "AGENTBOX_STATE_DIR": str(path)}) as editor:
        session = editor.open_session(box.paths.workspace)
        agent = box.client.sessions.show(session).sandbox_id
        with pytest.raises(PermissionDenied, match="no approver is connected"):
            ask_approval(box.api, agent, "pod/read")
        assert editor.asked == []
