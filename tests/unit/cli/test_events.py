"""`agentbox events` on journals as folders; the verbs that ask a box are in tests/api."""

import json
import subprocess
import sys

import pytest
import pytest_asyncio

from agentbox.adapters.events.contract import NewEvent
from agentbox.testing.clock import ManualClock
from agentbox.testing.local_store import LocalStore


def events(*words):
    """One call of the real command."""
    return subprocess.run(
        [sys.executable, "-m", "agentbox", *words], capture_output=True, text=True, check=False, cwd="/"
    )


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
        == "damaged: 2026-01-02.0001.jsonl:3, record 8: the record was altered: its hash is not that of its bytes\n"
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
    """What is left verifies and says where it begins; an open journal is refused with the writer's pid."""
    await store.open()
    done = events("events", "prune", str(store.directory), "--before", "9")
    assert done.returncode == 1
    assert "cannot open the journal: process" in done.stderr
    await store.close_all()
    done = events("events", "prune", str(store.directory), "--before", "9")
    assert (done.returncode, done.stdout) == (0, "the journal begins at record 6\n")
    assert not (store.directory / "2026-01-01.0001.jsonl").exists()
    report = json.loads(events("--json", "events", "verify", str(store.directory)).stdout)
    assert (report["ok"], report["first_seq"]) == (True, 6)
