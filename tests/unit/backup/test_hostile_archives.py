"""Archives that nobody's backup wrote: each is refused, and none of it looks like a short one."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.staged_snapshots import stage

from agentbox.backup.archive.reading import compare, opened_tar, unpack
from agentbox.backup.archive.staged_tar import StagedTar
from agentbox.backup.archive.streams import ArchiveDamaged
from agentbox.backup.archive.strict_tar import MAX_HEADER
from agentbox.contracts.backups import SnapshotMember
from agentbox.core import clock


def entry(name: str = "state/a", size: int = 0, **headers: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.pax_headers = size, dict(headers)
    return info


def tar_of(*entries: tarfile.TarInfo) -> bytes:
    parts = []
    for info in entries:
        parts.append(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        parts.append(bytes(info.size + -info.size % tarfile.BLOCKSIZE))
    return b"".join([*parts, bytes(2 * tarfile.BLOCKSIZE)])


def read(data: bytes) -> None:
    with opened_tar(io.BytesIO(data)) as members:
        compare(members, ())


def sparse() -> bytes:
    info = entry(size=512)
    info.type = tarfile.GNUTYPE_SPARSE
    return tar_of(info)


def contiguous() -> bytes:
    info = entry()
    info.type = tarfile.CONTTYPE
    return tar_of(info)


def without_the_end() -> bytes:
    return tar_of(entry("state/a"), entry("state/b"))[: -2 * tarfile.BLOCKSIZE]


def negative() -> bytes:
    info = entry(mtime="1.5", comment="x")
    info.pax_headers["size"] = "-512"
    return tar_of(info)


def damaged_in_the_middle() -> bytes:
    data = bytearray(tar_of(entry("state/a"), entry("state/b")))
    data[tarfile.BLOCKSIZE] ^= 1
    return bytes(data)


MADE: dict[str, Callable[[], bytes]] = {
    "sparse": sparse,
    "sparse by a pax header": lambda: tar_of(
        entry(size=512, **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})
    ),
    "contiguous": contiguous,
    "no end": without_the_end,
    "in the middle": damaged_in_the_middle,
    "a time that is not a number": lambda: tar_of(entry(mtime="nan")),
    "an endless time": lambda: tar_of(entry(mtime="inf")),
    "a late time": lambda: tar_of(entry(mtime="9" * 30)),
    "a negative size": negative,
    "a long header": lambda: tar_of(entry(comment="x" * (MAX_HEADER + 1))),
    "a long name": lambda: tar_of(entry("a" * (MAX_HEADER + 1))),
}


@pytest.mark.parametrize("kind", MADE)
def test_it_is_damaged(kind: str) -> None:
    """Not another error, and never the end of the archive."""
    with pytest.raises(ArchiveDamaged):
        read(MADE[kind]())


def test_a_sound_tar_is_read() -> None:
    """The same way of making them."""
    read(tar_of(entry("state/a", 700, mtime="12.5"), entry("state/b")))


def test_no_length_of_a_snapshot_is_a_snapshot(tmp_path: Path) -> None:
    """The tar of a staging directory, cut off at every block but the last two."""
    whole = b"".join(StagedTar(stage(tmp_path), clock.now()).chunks())
    for length in range(0, len(whole) - tarfile.BLOCKSIZE, tarfile.BLOCKSIZE):
        with pytest.raises(ArchiveDamaged):
            read(whole[:length])


def test_a_file_larger_than_in_the_head_is_not_written(tmp_path: Path) -> None:
    """Nor one that the head does not name."""
    data = tar_of(entry("state/a", 1 << 20), entry("state/b", 1 << 20))
    expected = (SnapshotMember(path="state/a", size=5, sha256="0" * 64),)
    with opened_tar(io.BytesIO(data)) as members:
        faults = unpack(members, expected, tmp_path)
    assert [fault.file for fault in faults] == ["state/a", "state/b"]
    assert list(tmp_path.rglob("*")) == []
