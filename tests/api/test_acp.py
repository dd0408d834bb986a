"""Sessions over the whole way: an editor or a person, `agentbox acp`, the API, session-host,
agent-host, and an agent in its sandbox. Clients are those of others, unmodified.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acp_peers
import pytest
from helpers import until
from support.acp_agent import SCRIPT
from support.acp_editor import AcpEditor
from support.session_box import SessionBox

from agentbox.client import ApiError, every
from agentbox.contracts.events import Event

MANIFEST = f"""
[agents.scripted]
command = ["python3", "-c", {json.dumps(SCRIPT)}]
protocol = "acp"
max_instances = 40

[agents.trusted]
command = ["python3", "-c", {json.dumps(SCRIPT)}]
protocol = "acp"
acp.permissions = "allow"
"""
DEFAULT = ("--agent", "scripted")


@pytest.fixture(scope="module")
def box() -> Iterator[SessionBox]:
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    with SessionBox(folder, "", MANIFEST, {}) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _clean(box: SessionBox) -> Iterator[None]:
    """After a test no session runs, and no review waits."""
    yield
    for session in every(box.client.sessions.list):
        if session.state not in ("closed", "failed"):
            box.client.sessions.close(session.session_id)
    for review in box.client.reviews.list().items:
        box.client.reviews.discard(review.agent_id)


@pytest.fixture
def editor(box: SessionBox) -> Iterator[AcpEditor]:
    with AcpEditor(box.words("acp", *DEFAULT), box.environment()) as connected:
        yield connected


def test_acpx_edits_and_the_review_has_it(box: SessionBox, tmp_path: Path) -> None:
    """One prompt of acpx, with a tool call and a permission that it grants; the host's files change
    only by the review."""
    words, environment = acp_peers.acpx(tmp_path, box.words("acp", *DEFAULT))
    done = subprocess.run(
        [*words, "--approve-all", "--cwd", str(box.paths.workspace), "agentbox", "exec", "edit hi"],
        env={**environment, "AGENTBOX_STATE_DIR": box.environment()["AGENTBOX_STATE_DIR"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "made it" in done.stdout
    assert str(box.paths.workspace / "made.txt") in done.stdout  # a path of the host
    assert not (box.paths.workspace / "made.txt").exists()
    (session,) = [one for one in every(box.client.sessions.list) if one.state != "closed"]
    box.client.sessions.close(session.session_id)
    (review,) = box.client.reviews.list().items
    assert review.agent_id == session.sandbox_id
    page = box.client.reviews.show(review.agent_id)
    assert [row.path for row in page.changes] == ["made.txt"]
    box.client.reviews.commit(review.agent_id, page.summary.digest)
    assert (box.paths.workspace / "made.txt").read_text() == "hi\n"
    (box.paths.workspace / "made.txt").unlink()


def test_the_example_client_of_the_sdk(box: SessionBox, tmp_path: Path) -> None:
    """It starts an agent with `npx`, offers its files, and prints what it gets."""
    words, environment = acp_peers.example_client(tmp_path, box.words("acp", *DEFAULT))
    done = subprocess.run(
        words,
        env={**environment, "AGENTBOX_STATE_DIR": box.environment()["AGENTBOX_STATE_DIR"]},
        cwd=box.paths.workspace,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Connected to agent (protocol v1)" in done.stdout, done.stderr
    assert "you said: Hello, agent!" in done.stdout
    assert "Agent completed with: end_turn" in done.stdout


def test_files_and_terminals_are_those_of_the_box(editor: AcpEditor, box: SessionBox) -> None:
    """What the agent reads and writes by the protocol is its branch; the editor is never asked."""
    session = editor.open_session(box.paths.workspace)
    assert editor.prompt(session, "files over") == "end_turn"
    assert editor.text() == "read over and over"
    editor.clear()
    assert editor.prompt(session, "terminal cat over-acp.txt; exit 3") == "end_turn"
    assert editor.text() == "exit 3: over"
    assert editor.asked == []
    assert not (box.paths.workspace / "over-acp.txt").exists()


def test_what_nobody_knows_passes_as_it_is(editor: AcpEditor, box: SessionBox) -> None:
    """An update of another kind, a notification of a vendor, and members beyond the schema."""
    session = editor.open_session(box.paths.workspace)
    assert editor.prompt(session, "novel") == "end_turn"
    kinds = {update["sessionUpdate"]: update for update in editor.updates}
    future = kinds["future_kind"]
    assert future["anything"] == {"path": "/workspace"}
    assert future["_meta"] == {"a": 1}
    assert kinds["agent_message_chunk"]["unknownMember"] == [1, 2.5, "\u2603"]
    (event,) = [one for one in editor.notifications if one["method"] == "_vendor/event"]
    assert event["params"]["b"] == 2


def test_a_permission_is_asked_and_answered(editor: AcpEditor, box: SessionBox) -> None:
    """With paths of the host; a rejection reaches the agent."""
    editor.answer_with = "reject_once"
    session = editor.open_session(box.paths.workspace)
    assert editor.prompt(session, "edit no") == "end_turn"
    assert editor.text() == "not allowed"
    (asked,) = editor.asked
    assert asked["method"] == "session/request_permission"
    assert asked["params"]["sessionId"] == session
    locations = [update["locations"] for update in editor.updates if "locations" in update]
    assert locations[0][0]["path"] == str(box.paths.workspace / "made.txt")


def test_a_cancelled_turn_ends(editor: AcpEditor, box: SessionBox) -> None:
    """The client gets the reason."""
    session = editor.open_session(box.paths.workspace)
    turn = editor.start_prompt(session, "wait")
    until(lambda: box.client.sessions.show(session).state == "busy")
    editor.notify("session/cancel", sessionId=session)
    assert editor.wait(turn)["result"]["stopReason"] == "cancelled"


def test_a_folder_that_is_not_mounted_is_refused(editor: AcpEditor, tmp_path: Path) -> None:
    """With the command that mounts it; nothing reaches the box."""
    editor.initialize()
    answer = editor.call("session/new", cwd=str(tmp_path), mcpServers=[])
    assert answer["error"]["data"]["kind"] == "path-outside"
    assert f"agentbox up --project {tmp_path}" in answer["error"]["message"]


@pytest.mark.parametrize("victim", ["api", "session-host"])
def test_a_killed_program_loses_no_update_and_repeats_none(
    editor: AcpEditor, box: SessionBox, victim: str
) -> None:
    """In the middle of a turn, which goes on; the answer of the prompt comes too."""
    session = editor.open_session(box.paths.workspace)
    turn = editor.start_prompt(session, "slowly 60")
    until(lambda: len(editor.updates) > 10)
    if victim == "api":
        box.api.kill()
        box.api.start()
    else:
        box.restart_session_host()
    assert editor.wait(turn, seconds=60)["result"]["stopReason"] == "end_turn"
    assert editor.text() == "".join(f"{number} " for number in range(60))


def test_the_transcript_is_what_the_client_got(editor: AcpEditor, box: SessionBox) -> None:
    """Byte for byte; also on the command line."""
    session = editor.open_session(box.paths.workspace)
    assert editor.prompt(session, "count 50") == "end_turn"
    items = box.client.sessions.transcript(session, limit=500).items
    texts = [
        item.data["content"]["text"]
        for item in items
        if item.kind == "update" and item.data["sessionUpdate"] == "agent_message_chunk"
    ]
    assert "".join(texts) == editor.text()
    shown = box.run("session", "transcript", session)
    assert f"> {editor.text()}" in shown.stdout
    lines = box.run("session", "transcript", "--format", "jsonl", session).stdout.splitlines()
    assert [json.loads(line)["cursor"] for line in lines] == [item.cursor for item in items]


def test_large_messages_are_read_back_whole(editor: AcpEditor, box: SessionBox) -> None:
    """Over 32 KiB they are kept apart, by digest; the transcript has them as the client got them."""
    session = editor.open_session(box.paths.workspace)
    words = " ".join(f"{number}\u2603" for number in range(12_000))
    assert editor.prompt(session, words) == "end_turn"
    assert len(editor.text().encode()) > 90_000
    printed = box.run("session", "transcript", "--format", "jsonl", session).stdout
    items = [json.loads(line) for line in printed.splitlines()]
    for item in (apart := [item for item in items if item["digest"]]):
        body = json.dumps(item["data"], separators=(",", ":"), ensure_ascii=False)
        assert hashlib.sha256(body.encode()).hexdigest() == item["digest"]
    assert [item["kind"] for item in apart] == ["prompt", "update"]
    assert apart[1]["data"]["content"]["text"] == editor.text()


def test_a_session_without_an_editor(box: SessionBox) -> None:
    """On the command line, from `new` to the review; a permission is answered by the manifest."""
    opened = box.run("session", "new", "--agent", "trusted", "mine")
    assert opened.returncode == 0, opened.stderr
    session = opened.stdout.strip()
    prompted = box.run("session", "prompt", "mine", "edit hello")
    assert prompted.returncode == 0, prompted.stderr
    assert "tool: Write made.txt (pending)\n" in prompted.stdout
    assert "made it\nend of turn 1: end_turn\n" in prompted.stdout
    assert f"{session}  idle" in box.run("session", "list").stdout
    suspended = box.run("session", "suspend", "mine")
    assert f"{session}  suspended" in suspended.stdout
    shown = box.run("session", "show", "mine").stdout
    used: Any = box.client.sessions.show("mine").resources
    assert 0 < used["cpu_seconds"] < 60 < used["peak_memory"]
    assert (
        f"CPU {used['cpu_seconds']:.1f} s, memory {used['peak_memory'] / (1 << 20):.0f} MiB"
        in shown
    )
    again = box.run("session", "prompt", "mine", "are you there?")
    assert again.returncode == 0, again.stderr
    closed = box.run("session", "close", "mine")
    assert closed.returncode == 0, closed.stderr
    (review,) = box.client.reviews.list().items
    assert f"agentbox review show {review.agent_id}" in closed.stderr
    unknown = box.run("session", "show", "nobody")
    assert unknown.returncode == 1
    with pytest.raises(ApiError) as caught:
        box.client.sessions.show("nobody")
    assert (caught.value.status, caught.value.code) == (404, "unknown-session")


def test_an_agent_that_breaks_the_protocol(editor: AcpEditor, box: SessionBox) -> None:
    """Its session ends, and its line is told escaped."""
    session = editor.open_session(box.paths.workspace)
    answer = editor.wait(editor.start_prompt(session, "garbage"))
    assert answer["error"]["data"]["kind"] == "acp-invalid"
    assert "this is not JSON" in json.dumps(answer)
    assert "\\u001b" not in json.dumps(answer)
    assert box.client.sessions.show(session).state == "failed"


def test_the_review_is_in_the_editor(editor: AcpEditor, box: SessionBox) -> None:
    """What changed is told at the end of the turn; the operator looks, takes it, and goes on in the
    same session, whose branch begins with what was taken."""
    session = editor.open_session(box.paths.workspace)
    assert editor.prompt(session, "edit taken") == "end_turn"
    assert "[agentbox] changed: made.txt" in editor.text(of_box=True)
    editor.clear()
    assert editor.prompt(session, "/agentbox:review") == "end_turn"
    shown = editor.text()
    assert "added made.txt" in shown
    assert "+taken" in shown
    digest = shown.split("/agentbox:commit ")[1].split("`")[0]
    refused = editor.wait(editor.start_prompt(session, "/agentbox:commit sha256:0"))
    assert refused["error"]["data"]["kind"] == "precondition-failed"
    editor.clear()
    assert editor.prompt(session, f"/agentbox:commit {digest}") == "end_turn"
    assert editor.text() == "Taken into the workspace: 1 paths.\n"
    assert (box.paths.workspace / "made.txt").read_text() == "taken\n"
    assert editor.prompt(session, "edit dropped") == "end_turn"
    assert editor.prompt(session, "/agentbox:discard") == "end_turn"
    editor.clear()
    assert editor.prompt(session, "/agentbox:review") == "end_turn"
    assert editor.text() == "Nothing has changed.\n"
    assert (box.paths.workspace / "made.txt").read_text() == "taken\n"
    (box.paths.workspace / "made.txt").unlink()


def test_the_journal_has_what_was_said(editor: AcpEditor, box: SessionBox) -> None:
    """Pieces of one message are one event; each event names agent and session, and comes once."""
    session = editor.open_session(box.paths.workspace)
    assert editor.prompt(session, "count 50") == "end_turn"

    def events() -> list[Event]:
        found = box.client.events.read(session_id=session, limit=500).events
        return [event for event in found if event.type.startswith("session.")]

    until(lambda: any(event.type == "session.stopped" for event in events()))
    said = [event for event in events() if event.type == "session.update"]
    texts = [event.data["data"]["content"]["text"] for event in said]
    assert "".join(texts) == editor.text()
    assert len(said) < 10
    assert {event.agent_id for event in said} == {box.client.sessions.show(session).sandbox_id}
    box.restart_session_host()
    editor.clear()
    assert editor.prompt(session, "count 1") == "end_turn"
    until(lambda: sum(event.type == "session.stopped" for event in events()) == 2)
    cursors = [event.data["cursor"] for event in events()]
    assert cursors == sorted(set(cursors))
