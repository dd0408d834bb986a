"""Parts of the boot by themselves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.prefix_box import default_programs, make_plan

from agentbox.box.boot.confine import is_directory_writable
from agentbox.box.boot.errors import BootError
from agentbox.box.boot.journal_tail import JournalTail, last_record
from agentbox.box.boot.runner import DEFECT, report_failure
from agentbox.box.boot.steps.p1_roots import RootFull, check_writable
from agentbox.box.seal.main import required_programs
from agentbox.box.supervision.boot_event_log import BootEventLog, read_events
from agentbox.core.linux import landlock_writes
from agentbox.core.paths import Paths
from agentbox.plan.model import SlotPlan

PLAN = make_plan(1, default_programs(1))


def segment(paths: Paths, name: str, *lines: bytes) -> None:
    paths.slot("events").mkdir(parents=True, exist_ok=True)
    (paths.slot("events") / name).write_bytes(b"".join(lines))


def test_the_journals_last_whole_record_is_found_behind_a_torn_one(tmp_path: Path) -> None:
    """The journal's last complete record is found behind a torn one."""
    paths = Paths(tmp_path)
    segment(paths, "2026-01-01.0000.jsonl", b'{"seq":1}\n', b'{"seq":2}\n')
    assert last_record(paths, PLAN) == JournalTail(2, False, "2026-01-01.0000.jsonl")
    segment(paths, "2026-01-02.0000.jsonl", b'{"se')
    assert last_record(paths, PLAN) == JournalTail(2, True, "2026-01-01.0000.jsonl")


def test_without_a_journal_there_is_no_last_record(tmp_path: Path) -> None:
    """Without a journal there is no last record."""
    assert last_record(Paths(tmp_path), PLAN) == JournalTail()
    off = make_plan(1, (), slots={"events": SlotPlan(use="off", required=False)})
    segment(Paths(tmp_path), "2026-01-01.0000.jsonl", b'{"seq":1}\n')
    assert last_record(Paths(tmp_path), off) == JournalTail()


def test_a_root_is_proven_by_a_write_and_left_as_it_was(tmp_path: Path) -> None:
    """A root is tested by a write and left unchanged."""
    assert check_writable(tmp_path / "new") > 0
    assert list((tmp_path / "new").iterdir()) == []


def test_a_root_without_room_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of the real file system, against a demand that none can meet."""
    monkeypatch.setattr("agentbox.box.boot.steps.p1_roots.MIN_FREE_BYTES", 1 << 62)
    room = os.statvfs(tmp_path)
    if room.f_bavail < room.f_blocks // 4:
        with pytest.raises(RootFull):
            check_writable(tmp_path)
    else:
        assert check_writable(tmp_path) >= room.f_blocks * room.f_frsize // 4


def test_a_writable_folder_is_told_and_left_clean(tmp_path: Path) -> None:
    """A writable directory is reported and left clean."""
    assert is_directory_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []


CONFINED = """
import sys
from pathlib import Path
from agentbox.core.linux import landlock_writes as landlock
inside, outside = Path(sys.argv[1]), Path(sys.argv[2])
landlock.set_no_new_privileges()
landlock.restrict_writes([inside, inside / "absent"])
(inside / "a").write_text("x")
(inside / "sub").mkdir()
(inside / "a").rename(inside / "sub" / "a")
(inside / "sub" / "a").unlink()
refused = []
for action in (
    lambda: (outside / "new").write_text("x"),
    lambda: (outside / "old").write_text("x"),
    lambda: (outside / "old").unlink(),
    lambda: (outside / "old").rename(inside / "old"),
    lambda: (outside / "folder").mkdir(),
    lambda: __import__("os").truncate(outside / "old", 0),
):
    try:
        action()
    except OSError as error:
        refused.append(error.errno)
print(refused, (outside / "old").read_text())
"""


def test_the_ruleset_lets_writes_happen_below_its_places_only(tmp_path: Path) -> None:
    """Create, write, rename between directories and remove inside; every way of changing anything
    outside is refused."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "old").write_text("kept")
    argv = [sys.executable, "-c", CONFINED, str(inside), str(outside)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    refused, kept = ended.stdout.rsplit(" ", 1)
    assert kept.strip() == "kept"
    assert len(json.loads(refused)) == 6


def test_each_abi_handles_what_it_knows() -> None:
    """Each ABI handles what it knows."""
    assert (
        landlock_writes.handled_rights(1)
        < landlock_writes.handled_rights(2)
        < landlock_writes.handled_rights(3)
        == landlock_writes.handled_rights(7)
    )


def test_the_seal_refuses_an_empty_set() -> None:
    """The seal refuses an empty set."""
    with pytest.raises(BootError, match="requires no program"):
        required_programs(make_plan(1, ()))


def test_a_bug_is_one_event_too_and_its_traceback_goes_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug is one event too and its traceback goes to stderr."""
    paths = Paths(tmp_path)
    paths.run.mkdir(parents=True)
    report_failure(BootEventLog(paths, "boot"), "3", ZeroDivisionError("by zero"))
    (event,) = read_events(paths)
    assert (event["phase"], event["fix"]) == ("3", DEFECT)
    assert "ZeroDivisionError" in event["reason"]
    captured = capsys.readouterr()
    assert json.loads(captured.out) == event
    assert "ZeroDivisionError" in captured.err
