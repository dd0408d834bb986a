"""The sentinel's file, its copies and their chain."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentbox.box.supervision.boot_record import Posture, PreviousBoot
from agentbox.box.supervision.sentinel import (
    DIGESTS,
    MAX_COPIES,
    Sentinel,
    broken_links,
    last_copy_sha256,
    read_sentinel,
    sentinel_copies,
    sentinel_fault,
    write_sentinel,
)
from agentbox.core.canonical import digest
from agentbox.core.paths import Paths

WRITES_FOR_EVER = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[2])))
from test_supervision_sentinel import sentinel
from agentbox.core.paths import Paths
from agentbox.box.supervision.sentinel import write_sentinel
paths = Paths(Path(sys.argv[1]))
print("go", flush=True)
while True:
    paths.sentinel.unlink(missing_ok=True)
    write_sentinel(paths, sentinel("one", release="x" * 200_000))
"""


def sentinel(boot_id: str, previous: str | None = None, release: str = "6.1") -> Sentinel:
    digests = {**dict.fromkeys(DIGESTS), "plan": "sha256:plan"}
    return Sentinel(
        boot_id,
        "2026-01-01T00:00:00.000Z",
        1.5,
        digests,
        (),
        release,
        6,
        Posture(),
        (),
        PreviousBoot("x", previous, "clean"),
    )


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path)
    made.run.mkdir(parents=True)
    made.boots.mkdir(parents=True)
    return made


def test_what_is_written_is_read_back_with_its_hash(paths: Paths) -> None:
    """What is written is read back with its hash."""
    sha256 = write_sentinel(paths, sentinel("one"))
    found = read_sentinel(paths.sentinel)
    assert found is not None
    assert found.sha256 == sha256 == digest(paths.sentinel.read_bytes())
    assert found.document["boot_id"] == "one"
    assert paths.boot_copy("one").read_bytes() == paths.sentinel.read_bytes()
    assert [path.name for path in paths.run.iterdir()] == ["bootstrap.done"]


def test_each_fault_has_its_word(paths: Paths) -> None:
    """Each fault has its word."""

    def why(sha256: str | None = None) -> str:
        return sentinel_fault(
            read_sentinel(paths.sentinel), boot_id="one", plan_digest="sha256:plan", sha256=sha256
        )

    assert why() == "missing"
    sha256 = write_sentinel(paths, sentinel("one"))
    assert why() == ""
    assert why(sha256) == ""
    assert why("sha256:other") == "changed"
    paths.sentinel.chmod(0o600)
    paths.sentinel.write_text("no json")
    assert why() == "foreign"
    paths.sentinel.write_bytes(sentinel("two").to_bytes())
    assert why() == "foreign"


def test_a_sentinel_without_a_digest_is_a_bug(paths: Paths) -> None:
    """A sentinel without a digest is a bug."""
    from dataclasses import replace

    with pytest.raises(ValueError, match="all digests"):
        replace(sentinel("one"), digests={}).to_bytes()


def test_twenty_copies_are_kept_and_the_chain_holds(paths: Paths) -> None:
    """Twenty copies are stored and the chain is valid."""
    for number in range(MAX_COPIES + 3):
        write_sentinel(paths, sentinel(f"{number:04}", last_copy_sha256(paths)))
    assert len(sentinel_copies(paths)) == MAX_COPIES
    assert list(broken_links(paths)) == []


def test_a_copy_under_another_name_is_found(paths: Paths) -> None:
    """A copy under another name is found."""
    write_sentinel(paths, sentinel("one"))
    paths.boot_copy("one").rename(paths.boot_copy("two"))
    assert "belongs to another boot" in next(iter(broken_links(paths)))


def test_a_writer_killed_at_any_moment_leaves_a_whole_sentinel_or_none(paths: Paths) -> None:
    """A writer killed at any moment leaves a complete sentinel or none."""
    whole = sentinel("one", release="x" * 200_000).to_bytes()
    seen = set()
    for round_ in range(25):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITES_FOR_EVER, str(paths.prefix), str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"go\n"
        end = time.monotonic() + 0.001 * round_
        while time.monotonic() < end:
            os.sched_yield()
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        there = paths.sentinel.exists()
        seen.add(there)
        assert not there or paths.sentinel.read_bytes() == whole
    assert seen
