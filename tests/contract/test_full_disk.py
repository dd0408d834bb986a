"""On a full disk a write is 507 in every slot, stored data is read, and the slot reports why it is
degraded."""

import errno
import json
import os
import subprocess
import sys

import pytest

from agentbox.box.readiness.requirements import paths
from agentbox.core.files import atomic

MOUNTED = """
    mount -t tmpfs -o size=12m none "$1"
    trap 'umount "$1"' EXIT
    "$2" -m support.full_disk "$1"
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each slot answered, by its name."""
    own = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    folder = str(tmp_path_factory.mktemp("disk"))
    done = subprocess.run(
        [*own, "sh", "-ec", MOUNTED, "sh", folder, sys.executable],
        capture_output=True,
        timeout=120,
        check=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b'{"slot"')]
    return {line["slot"]: line for line in lines}


@pytest.mark.parametrize("slot", ["beads", "memory", "pods", "events"])
def test_a_full_disk(told, slot):
    """The same response for each write, none of them a bug of the box; with space again the slot
    continues."""
    found = told[slot]
    assert found["before"] == "ok"
    assert found["write"][-1] == "quota-exceeded 507"
    assert set(found["write"]) <= {"quota-exceeded 507", "ok"}
    assert found["read"] == "ok"
    assert found["health"][0] == "degraded"
    assert "the disk is full" in found["health"][1]
    assert found["after"] == ["ok", "ok"]
    assert found["opened"][0] == "ok"
    assert found["opened"][1] in ("ok", "degraded")


def test_a_file_that_is_refused_leaves_nothing(tmp_path, monkeypatch):
    """Not even the part that was written beside it: a task that is refused is nothing on the disk."""

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    atomic.replace_json(tmp_path / "kept.json", {"a": 1})
    monkeypatch.setattr(atomic.os, "fsync", full)
    for name in ("kept.json", "new.json"):
        with pytest.raises(OSError, match="No space"):
            atomic.replace_json(tmp_path / name, {"a": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]
    assert json.loads((tmp_path / "kept.json").read_text()) == {"a": 1}


def test_ready_names_the_disk(tmp_path, monkeypatch):
    """Less than the journal needs to continue."""
    assert not paths.is_full(tmp_path)
    monkeypatch.setattr(paths, "MIN_FREE_BYTES", 1 << 60)
    assert paths.is_full(tmp_path)
