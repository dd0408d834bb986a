"""`agentbox events` on journals as directories; commands that need a box are in tests/api."""

import json
from pathlib import Path

import pytest
import pytest_asyncio
from agentbox_testkit.clock import ManualClock
from agentbox_testkit.local_store import LocalStore
from support.forked_program import run_command
from support.journal_edits import edit_file

from agentbox.contracts.events import NewEvent


def events(*words):
    """One call of the real command."""
    return run_command(*words, folder=Path("/"))


@pytest_asyncio.fixture
async def store(tmp_path):
    """A journal of two days, closed."""
    clock = ManualClock()
    made = LocalStore("events", "local-jsonl", tmp_path, clock=clock)
    adapter = await made.open()
    for number in range(10):
        await adapter.append([NewEvent(type="test.thing", data={"n": number})])
        clock.advance(86400 / 5)
    await made.close_all()
    return made


def test_a_sound_journal(store):
    """Exit 0, the records and the tail; the tail serves as an anchor."""
    done = events("events", "verify", str(store.directory))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sound: records 0 to 10, tail 10:")
    again = events("events", "verify", str(store.directory), "--anchor", done.stdout.split()[-1])
    assert again.returncode == 0


def test_a_changed_byte_is_named(store):
    """Exit 1, file, line and record; the same with --json."""
    path = store.directory / "2026-01-02.0001.jsonl"
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b'"n":7', b'"n":8'))
    done = events("events", "verify", str(store.directory))
    assert done.returncode == 1
    assert (
        done.stdout
        == "damaged: 2026-01-02.0001.jsonl:3, record 8: the record was altered: its hash does not match its bytes\n"
    )
    report = json.loads(events("--json", "events", "verify", str(store.directory)).stdout)
    assert (report["ok"], report["error"]["line"]) == (False, 3)


def test_no_such_folder(tmp_path):
    """One sentence, no traceback."""
    done = events("events", "verify", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "cannot verify" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("anchor", ["5", "5:abc", "x:" + "0" * 64])
def test_an_anchor_is_a_number_and_a_hash(store, anchor):
    """Exit 2."""
    assert events("events", "verify", str(store.directory), "--anchor", anchor).returncode == 2


async def test_prune_removes_whole_segments(store):
    """The rest verifies and reports its first record; an open journal is refused with the writer's
    pid."""
    await store.open()
    done = events("events", "prune", str(store.directory), "--before", "9")
    assert done.returncode == 1
    assert "cannot open the journal: process" in done.stderr
    await store.close_all()
    done = events("events", "prune", str(store.directory), "--before", "9")
    assert (done.returncode, done.stdout) == (
        0,
        "removed 2026-01-01.0001.jsonl\nthe journal begins at record 6\n",
    )
    assert not (store.directory / "2026-01-01.0001.jsonl").exists()
    report = json.loads(events("--json", "events", "verify", str(store.directory)).stdout)
    assert (report["ok"], report["first_seq"]) == (True, 6)


@pytest.mark.parametrize(
    ("before", "first"),
    [("2026-01-02", 6), ("6", 6), ("5", 0), ("2026-01-01", 0), ("2027-01-01", 6)],
)
def test_prune_by_record_or_day(store, before, first):
    """Only complete segments, never the newest; a dry run prints the same and removes nothing."""
    files = sorted(store.directory.iterdir())
    words = ("--json", "events", "prune", str(store.directory), "--before", before)
    planned = json.loads(events(*words, "--dry-run").stdout)
    assert sorted(store.directory.iterdir()) == files
    assert planned == {
        "first_seq": first,
        "removed": ["2026-01-01.0001.jsonl"] if first else [],
        "dry_run": True,
    }
    assert json.loads(events(*words).stdout) == {**planned, "dry_run": False}
    assert (store.directory / "anchor.json").exists() == bool(first)


def test_a_damaged_journal_is_not_pruned(store):
    """What would be removed may be the proof."""
    edit_file("2026-01-01.0001.jsonl", lambda lines: lines[1:])(store.directory)
    done = events("events", "prune", str(store.directory), "--before", "9")
    assert (done.returncode, "2026-01-01.0001.jsonl:1" in done.stderr) == (1, True)
    assert (store.directory / "2026-01-01.0001.jsonl").exists()


@pytest.mark.parametrize("before", ["", "-1", "2026-13-01", "yesterday"])
def test_prune_wants_a_record_or_a_day(store, before):
    """Exit 2."""
    assert events("events", "prune", str(store.directory), "--before", before).returncode == 2


def test_export_gives_the_lines_as_stored(store):
    """Byte for byte, over all segments; after a record, of a type."""
    whole = b"".join(path.read_bytes() for path in sorted(store.directory.glob("*.jsonl"))).decode()
    assert events("events", "export", str(store.directory)).stdout == whole
    since = events("--json", "events", "export", str(store.directory), "--since", "8").stdout
    assert since == "".join(whole.splitlines(keepends=True)[9:])
    sealed = events("events", "export", str(store.directory), "--type", "journal.*").stdout
    assert [json.loads(line)["type"] for line in sealed.splitlines()] == ["journal.segment.sealed"]


def test_export_as_cloudevents(store):
    """Each line is accepted by `POST /v1/events` as application/cloudevents+json, with its position
    in the chain."""
    done = events(
        "events", "export", str(store.directory), "--format", "cloudevents", "--since", "9"
    )
    (event,) = [json.loads(line) for line in done.stdout.splitlines()]
    (stored,) = [
        json.loads(line)
        for line in (store.directory / "2026-01-02.0001.jsonl").read_bytes().splitlines()
    ][-1:]
    assert event == {
        "specversion": "1.0", "id": stored["id"], "source": "urn:agentbox:box:test", "type": "agentbox.test.thing",
        "time": stored["ts"], "datacontenttype": "application/json", "data": {"n": 9}, "agentboxseq": "10",
        "agentboxhash": stored["hash"], "agentboxprev": stored["prev_hash"],
    }  # fmt: skip


def test_nothing_of_a_damaged_journal_is_exported(store):
    """Exit 1 with the position."""
    edit_file("2026-01-02.0001.jsonl", lambda lines: lines[1:])(store.directory)
    done = events("events", "export", str(store.directory))
    assert (done.returncode, done.stdout) == (1, "")
    assert "2026-01-02.0001.jsonl:1" in done.stderr


@pytest.mark.parametrize("verb", ["tail", "show", "verify", "export", "prune"])
def test_each_verb_has_help(verb):
    """Exit 0, from any directory."""
    done = events("events", verb, "--help")
    assert (done.returncode, done.stdout.startswith(f"Usage: agentbox events {verb}")) == (0, True)
