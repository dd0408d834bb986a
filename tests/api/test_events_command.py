"""`agentbox events` against a real API, as a user's shell sees it: the state directory of a running
box, its URL, its token."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.api_box import TOKEN, ApiBox
from support.forked_program import run_command
from support.journal_edits import edit_file

from agentbox.adapters.events.journal.verify import verify
from agentbox.client import BoxClient
from agentbox.host.engines.state import BoxRecord, BoxState

Events = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def words(box: ApiBox, tmp_path: Path) -> Callable[..., list[str]]:
    """The command line, for the box that this user started last."""
    manifest = tmp_path / "agentbox.toml"
    manifest.write_text('[meta]\nschema_version = 1\nname = "journal-of-a-test"\n')
    state = BoxState(tmp_path / "state" / "journal-of-a-test")
    state.make()
    state.save_record(
        BoxRecord(
            engine="docker",
            name="journal-of-a-test",
            api_url=box.url,
            folder=str(state.compose_dir),
        )
    )
    state.token_file.write_text(TOKEN)
    return lambda *given: [sys.executable, "-m", "agentbox", "--manifest", str(manifest), *given]


@pytest.fixture
def events(words: Callable[..., list[str]], tmp_path: Path) -> Events:
    """One call, to its end."""
    env = {**os.environ, "AGENTBOX_STATE_DIR": str(tmp_path / "state")}
    return lambda *given: run_command(*words(*given)[3:], env=env, timeout=60)


@pytest.fixture
def appended(client: BoxClient, request: pytest.FixtureRequest) -> list[dict[str, object]]:
    """Three events of this test's own, as stored."""
    kind = f"test.{request.node.name.split('[')[0]}"
    done = client.call(
        "append_events", body={"events": [{"type": kind, "data": {"n": n}} for n in range(3)]}
    )
    found = client.call("read_events", query={"types": kind})["events"]
    assert [event["seq"] for event in found] == list(range(done["first_seq"], done["last_seq"] + 1))
    return list(found)


def test_tail(events: Events, appended: list[dict[str, object]], client: BoxClient) -> None:
    """The newest, for people and as JSON lines; by type, however many others came since."""
    client.call("append_events", body={"events": [{"type": "test.other", "data": {}}] * 30})
    done = events("--json", "events", "tail", "-n", "2", "--type", str(appended[0]["type"]))
    assert (done.returncode, [json.loads(line) for line in done.stdout.splitlines()]) == (
        0,
        appended[1:],
    )
    assert (
        f"{appended[2]['seq']:>8}  {appended[2]['ts']}  "
        in events("events", "tail", "-n", "100").stdout
    )
    assert events("events", "tail", "-n", "0").stdout == ""


def test_tail_shows_what_an_agent_wrote_as_text(events: Events, client: BoxClient) -> None:
    """A subject that would set the clipboard, clear the screen and begin a line of its own: one line, and every escape visible."""
    subject = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\r\n       1  2026-01-01  box.trusted\x9b31m"
    sent = {"type": "test.hostile", "subject": subject, "data": {"text": subject}}
    stored = client.call("append_events", body={"events": [sent]})["last_seq"]
    for words in (("tail", "-n", "1", "--type", "test.hostile"), ("show", str(stored))):
        said = events("events", *words).stdout
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said)
        assert not [line for line in said.splitlines() if line.startswith("       1  ")]
        assert "52;c;ZXZpbA==" in said


def test_tail_follows(
    words: Callable[..., list[str]],
    appended: list[dict[str, object]],
    client: BoxClient,
    tmp_path: Path,
) -> None:
    """New events are printed as they arrive, until the command is interrupted."""
    kind = str(appended[0]["type"])
    line = words("--json", "events", "tail", "-f", "--type", kind)
    env = {**os.environ, "AGENTBOX_STATE_DIR": str(tmp_path / "state")}
    with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        try:
            for wanted in (0, 1, 2, 7, 8):
                if wanted >= 7:
                    client.call(
                        "append_events", body={"events": [{"type": kind, "data": {"n": wanted}}]}
                    )
                assert json.loads(following.stdout.readline())["data"] == {"n": wanted}
        finally:
            following.terminate()


def test_show(events: Events, appended: list[dict[str, object]]) -> None:
    """One complete record; a missing one is an error."""
    done = events("--json", "events", "show", str(appended[1]["seq"]))
    assert json.loads(done.stdout) == appended[1]
    missing = events("events", "show", "999999999")
    assert (missing.returncode, "cannot find this event" in missing.stderr) == (1, True)


def test_export_of_a_box_is_its_journal(
    events: Events, appended: list[dict[str, object]], box: ApiBox
) -> None:
    """The lines are those of the files, byte for byte, so that a copy can be checked anywhere."""
    done = events("events", "export")
    stored = b"".join(
        path.read_bytes() for path in sorted(box.paths.slot("events").glob("*.jsonl"))
    ).decode()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert stored.startswith(done.stdout)
    kind = str(appended[0]["type"])
    rows = events("events", "export", "--format", "cloudevents", "--type", kind).stdout.splitlines()
    assert [json.loads(row)["agentboxseq"] for row in rows] == [
        str(event["seq"]) for event in appended
    ]


def test_verify_of_a_box_and_of_its_folder(
    events: Events, appended: list[dict[str, object]], box: ApiBox, tmp_path: Path
) -> None:
    """The same tail; a changed copy is reported as damaged at the right position, the box's own
    journal is valid."""
    asked = json.loads(events("--json", "events", "verify").stdout)
    assert (asked["ok"], asked["last_seq"] >= appended[2]["seq"]) == (True, True)
    copy = shutil.copytree(box.paths.slot("events"), tmp_path / "copy")
    anchor = f"{asked['last_seq']}:{asked['tail_hash']}"
    assert events("events", "verify", str(copy), "--anchor", anchor).returncode == 0
    name = max(path.name for path in copy.glob("*.jsonl"))
    edit_file(name, lambda lines: lines[1:])(copy)
    found = json.loads(events("--json", "events", "verify", str(copy)).stdout)["error"]
    assert (found["file"], found["line"], found["seq"]) == (name, 1, 0)


def test_a_journal_at_work_is_sound(client: BoxClient, box: ApiBox) -> None:
    """Its directory can be verified while the box appends to it."""
    kind = "test.work"
    for number in range(20):
        client.call("append_events", body={"events": [{"type": kind, "data": {"n": number}}] * 5})
        head = client.call("head_event")["seq"]
        report = verify(box.paths.slot("events"))
        assert (report.ok, report.last_seq >= head) == (True, True)


def test_pruning_a_box_that_runs_is_refused(events: Events, box: ApiBox) -> None:
    """With the pid of its writer."""
    done = events("events", "prune", str(box.paths.slot("events")), "--before", "1")
    assert box.process is not None
    assert (
        done.returncode,
        f"process {box.process.pid} has it open for writing" in done.stderr,
    ) == (1, True)
