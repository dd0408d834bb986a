"""The owner of a file in a shared directory, its size, and what is removed with its tree. Real
processes have real files open."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentbox.sandbox.monitor import shared_memory
from agentbox.sandbox.monitor.shared_memory import SharedMemoryUsage

MIB = 1 << 20
ONE, TWO = 1 << 22, 2 << 22  # unused pids of reapers


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A directory of the test's own on the machine's own tmpfs."""
    made = Path(shared_memory.DIRECTORY) / f"agentbox-test-{os.getpid()}-{tmp_path.name}"
    made.mkdir()
    yield made
    for path in made.iterdir():
        path.unlink()
    made.rmdir()


@contextmanager
def holder(path: Path, how: str) -> Iterator[int]:
    """The pid of a process that has the file open, or mapped only."""
    mapped = "import mmap; kept = mmap.mmap(f.fileno(), 0); f.close()" if how == "mapped" else ""
    script = f"f = open({str(path)!r}, 'r+b'); {mapped}\nprint(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-I", "-c", script], stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        yield process.pid
        process.kill()


def filled(path: Path) -> Path:
    path.write_bytes(bytes(MIB))
    return path


@pytest.mark.parametrize("how", ["open", "mapped"])
def test_who_was_seen_with_it_has_it(folder: Path, how: str) -> None:
    """Also after it was closed; a second owner that appears later owns nothing, and only that file
    is removed with the first."""
    found, path = SharedMemoryUsage(str(folder)), filled(folder / "mine")
    other = filled(folder / "nobody-s")
    assert found.is_due()
    with holder(path, how) as pid:
        assert found.poll({ONE: [pid], TWO: []}, [pid])[ONE] >= MIB
    assert found.poll({ONE: [], TWO: []}, [])[ONE] >= MIB
    with holder(path, "open") as pid:
        assert found.poll({ONE: [], TWO: [pid]}, [pid])[TWO] == 0
    found.discard(TWO)
    assert path.exists()
    found.discard(ONE)
    assert not path.exists()
    assert other.exists()


def test_what_others_hold_is_never_an_agent_s(folder: Path) -> None:
    """Nor files from before: neither is counted, and neither is removed."""
    before = filled(folder / "before")
    found, path = SharedMemoryUsage(str(folder)), filled(folder / "the-operator-s")
    with (
        holder(path, "open") as stranger,
        holder(path, "open") as mine,
        holder(before, "open") as old,
    ):
        assert found.poll({ONE: [mine, old]}, [stranger, mine, old]) == {ONE: 0}
    found.discard(ONE)
    assert path.exists()
    assert before.exists()


def test_a_deleted_file_counts_while_it_is_open(folder: Path) -> None:
    """And no longer."""
    found, path = SharedMemoryUsage(str(folder)), filled(folder / "gone")
    with holder(path, "open") as pid:
        path.unlink()
        assert found.poll({ONE: [pid]}, [pid])[ONE] >= MIB
    assert found.poll({ONE: []}, []) == {ONE: 0}


def test_a_quiet_folder_is_not_looked_at(folder: Path) -> None:
    """Only when a file was added or removed, or a tree was added that no poll has seen."""
    found = SharedMemoryUsage(str(folder))
    found.is_due()
    assert [found.is_due() for _ in range(100)].count(
        True
    ) < 100  # others of this machine may use the same tmpfs
    filled(folder / "new")
    assert found.is_due()
    found.invalidate()
    assert found.is_due()


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """Neither to count nor to delete."""
    found, outside = SharedMemoryUsage(str(folder)), filled(tmp_path / "outside")
    (folder / "link").symlink_to(outside)
    with holder(outside, "open") as pid:
        assert found.poll({ONE: [pid]}, [pid]) == {ONE: 0}
    found.discard(ONE)
    assert outside.exists()
