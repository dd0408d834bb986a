"""The size of a directory, by blocks, whatever is done to hide it."""

import array
import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentbox.policy.limits.registry import INODE_BYTES
from agentbox.sandbox.monitor.disk_usage import (
    MAX_DEPTH,
    TOO_DEEP_BYTES,
    DiskUsage,
    has_in_flight_fds,
    measure_usage,
    written_bytes,
)

MIB = 1 << 20
_NOBODY = 65534
_ROOM = 64 << 10  # what directories and inodes cost here


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    return tmp_path


def near(found: int, wanted: int) -> bool:
    return wanted <= found <= wanted + _ROOM


def test_temporary_and_other_folders_are_told_apart(folder: Path) -> None:
    """Home and temp together, the rest apart; below them too."""
    (folder / "home" / "below").mkdir()
    (folder / "home" / "below" / "a").write_bytes(bytes(MIB))
    (folder / "tmp" / "b").write_bytes(bytes(MIB))
    (folder / "work" / "tmp").mkdir()
    (folder / "work" / "tmp" / "c").write_bytes(bytes(4 * MIB))
    found = measure_usage(str(folder))
    assert near(found.tmp, 2 * MIB)
    assert near(found.branch_disk, 4 * MIB)


def test_blocks_count_and_not_lengths(folder: Path) -> None:
    """A sparse file costs its blocks; a second name of a file costs nothing; an empty file costs an
    inode."""
    with (folder / "tmp" / "sparse").open("wb") as stream:
        stream.truncate(1 << 30)
    (folder / "tmp" / "real").write_bytes(bytes(MIB))
    for number in range(10):
        (folder / "tmp" / f"name-{number}").hardlink_to(folder / "tmp" / "real")
    before = measure_usage(str(folder)).tmp
    assert near(before, MIB)
    for number in range(100):
        (folder / "tmp" / f"empty-{number}").touch()
    assert measure_usage(str(folder)).tmp >= before + 100 * INODE_BYTES


def test_allocated_but_unwritten_blocks_count(folder: Path) -> None:
    """Blocks of `fallocate` are used for everyone."""
    with (folder / "work" / "x").open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, 8 * MIB)
    assert near(measure_usage(str(folder)).branch_disk, 8 * MIB)


def test_a_deleted_file_counts_while_it_is_open(folder: Path) -> None:
    """Once, however often it is open; nothing after it was closed; a file elsewhere is not this
    agent's."""
    with (
        (folder / "tmp" / "gone").open("wb") as stream,
        (folder.parent / "elsewhere").open("wb") as other,
    ):
        for one in (stream, other):
            one.write(bytes(4 * MIB))
            one.flush()
        again = os.dup(stream.fileno())
        for name in (folder / "tmp" / "gone", folder.parent / "elsewhere"):
            name.unlink()
        assert near(measure_usage(str(folder), [os.getpid()]).tmp, 4 * MIB)
        assert near(measure_usage(str(folder)).tmp, 0)
    os.close(again)
    assert near(measure_usage(str(folder), [os.getpid()]).tmp, 0)


def test_a_link_is_not_followed(folder: Path) -> None:
    """Neither to a file nor to a directory."""
    (folder / "work" / "big").write_bytes(bytes(4 * MIB))
    (folder / "tmp" / "file").symlink_to(folder / "work" / "big")
    (folder / "tmp" / "folder").symlink_to(folder / "work")
    assert near(measure_usage(str(folder)).tmp, 0)


def test_a_closed_folder_is_opened() -> None:
    """Mode 0 hides nothing from its owner, who is not root here."""
    with tempfile.TemporaryDirectory() as name, as_no_root(Path(name)):
        closed = Path(name) / "tmp" / "closed"
        closed.mkdir(parents=True)
        (closed / "x").write_bytes(bytes(4 * MIB))
        closed.chmod(0)
        assert near(measure_usage(name).tmp, 4 * MIB)


@contextlib.contextmanager
def as_no_root(folder: Path) -> Iterator[None]:
    """Gives the directory to `nobody` and acts as that user, if this process is root."""
    if os.geteuid() != 0:
        yield
        return
    os.chown(folder, _NOBODY, _NOBODY)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_is_too_deep_counts_as_all(folder: Path) -> None:
    """It exceeds every cap, no descriptor stays open, and a little less deep is measured."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    at = folder / "tmp"
    for _ in range(MAX_DEPTH - 1):
        at = at / "d"
        at.mkdir()
    (at / "x").write_bytes(bytes(MIB))
    assert MIB <= measure_usage(str(folder)).tmp < 4 * MIB
    for _ in range(2):
        at = at / "d"
        at.mkdir()
    assert measure_usage(str(folder)).tmp >= TOO_DEEP_BYTES
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_folder_that_is_gone_is_empty(tmp_path: Path) -> None:
    """No error: the agent may just have ended."""
    assert measure_usage(str(tmp_path / "nothing"), [1 << 22]) == DiskUsage()


def test_what_a_process_wrote_is_known(tmp_path: Path) -> None:
    """Grows with each write; a process that has exited counts nothing."""
    before = written_bytes([os.getpid()])
    with contextlib.closing((tmp_path / "x").open("wb", buffering=0)) as stream:
        stream.write(bytes(MIB))
    assert written_bytes([os.getpid(), 1 << 22]) >= before + MIB


def test_only_a_socket_with_descriptors_in_it_carries_some() -> None:
    """Waiting bytes are no descriptors, and a receiver leaves none."""
    near, far = socket.socketpair()
    with near, far:
        path = f"/proc/self/fd/{far.fileno()}"
        near.send(b"bytes")
        assert not has_in_flight_fds(path)
        near.sendmsg(
            [b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [near.fileno()]))]
        )
        assert has_in_flight_fds(path)
        far.recv(5)
        _, taken, _, _ = socket.recv_fds(far, 1, 1)
        os.close(*taken)
        assert not has_in_flight_fds(path)
