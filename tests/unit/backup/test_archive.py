"""Archives: equal staging gives equal bytes, what was staged comes back, heads tell the truth."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
import rfc8785
from support.staged_snapshots import AT, filled, identity, stage

from agentbox.backup.archive.keys import parse_recipients
from agentbox.backup.archive.reading import compare
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.archive.staged_tar import StagedTar
from agentbox.backup.archive.streams import HashingFile, compressed, write_archive
from agentbox.backup.errors import BackupError
from agentbox.core.errors import ExitCode
from agentbox.restoring.members import unpack as restore_members


def test_equal_staging_gives_equal_bytes(tmp_path: Path) -> None:
    """Made twice, in another order, with other times after the cut, owners and group bits."""
    one, two = stage(tmp_path / "a"), stage(tmp_path / "b")
    for folder, _folders, files in os.walk(two, topdown=False):
        for name in reversed(files):
            path = Path(folder, name)
            if path.is_symlink() or path.name == "empty":
                continue
            data, mode = path.read_bytes(), path.stat().st_mode
            path.unlink()
            path.write_bytes(data)
            path.chmod(mode & 0o700)
            os.chown(path, 1000, 1000)
    tars = [b"".join(compressed(StagedTar(root, AT).chunks())) for root in (one, two)]
    assert tars[0] == tars[1]


def test_the_head_is_canonical_and_complete(tmp_path: Path) -> None:
    """By another library of JCS, and by the hashes of what was staged."""
    _key, recipient = identity()
    repository = filled(tmp_path, recipient, 2)
    folder = tmp_path / "backups"
    first, second = (folder / f"s{number}.json" for number in (1, 2))
    head = repository.get("s2")
    assert second.read_bytes() == rfc8785.dumps(head.to_wire())
    assert head.previous == hashlib.sha256(first.read_bytes()).hexdigest()
    archive = (folder / head.archive).read_bytes()
    assert (head.sha256, head.size) == (hashlib.sha256(archive).hexdigest(), len(archive))
    files = [
        path
        for path in (tmp_path / "staged/s2").rglob("*")
        if path.is_file() and not path.is_symlink()
    ]
    assert {row.path: row.sha256 for row in head.members} == {
        os.fsencode(path.relative_to(tmp_path / "staged/s2")).decode(
            "utf-8", "backslashreplace"
        ): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    assert (head.recipients, head.encrypt, head.seq, head.box) == (1, "age", 41, "lab")


def test_names_of_bytes_and_of_backslashes_stay_apart(tmp_path: Path) -> None:
    """A byte that is not UTF-8, the text that stands for it, and that text with two backslashes:
    an agent makes all three, and a restore finds each with its own hash."""
    key, recipient = identity()
    staged = stage(tmp_path)
    shutil.rmtree(staged / "state")
    names = [b"f\xff", rb"f\xff", rb"f\\xff", "f\u00ff".encode()]
    for number, name in enumerate(names):
        (staged / "branches" / os.fsdecode(name)).write_bytes(b"%d" % number)
    repository = ArchiveRepository(tmp_path / "backups", (recipient,))
    head = repository.write(staged).snapshot
    assert len({row.path for row in head.members}) == len(head.members)
    expected = {row.path: row for row in head.members}
    roots = {name: tmp_path / "restored" / name for name in ("state", "branches")}
    with repository.open("s1", [key]) as members:
        restore_members("s1", members, roots, expected)
    for number, name in enumerate(names):
        assert (roots["branches"] / os.fsdecode(name)).read_bytes() == b"%d" % number
    with repository.open("s1", [key]) as members:
        assert not list(compare(members, head.members))


def test_a_name_that_was_written_is_refused(tmp_path: Path) -> None:
    """No head has two rows of one name."""
    tar = StagedTar(stage(tmp_path), AT)
    list(tar.chunks())
    with pytest.raises(BackupError, match="two files have this name"):
        list(tar.chunks())


def test_nobody_can_read_it(tmp_path: Path) -> None:
    """Without recipients nothing is begun, and the hint says what to run."""
    repository = ArchiveRepository(tmp_path / "backups", ())
    with pytest.raises(BackupError, match="nobody could read it") as caught:
        repository.write(stage(tmp_path))
    assert caught.value.exit_code is ExitCode.USAGE
    assert "agentbox backup init" in caught.value.hint


def test_wrong_and_missing_identities(tmp_path: Path) -> None:
    """Neither gets a byte; both are told to how many it was encrypted."""
    _key, recipient = identity()
    other, recipient_2 = identity()
    third, _ = identity()
    repository = ArchiveRepository(tmp_path / "backups", (recipient, recipient_2))
    repository.write(stage(tmp_path))
    for identities in ([], [third]):
        seen = []
        with (
            pytest.raises(BackupError, match="encrypted to 2 recipients") as caught,
            repository.open("s1", identities) as members,
        ):
            seen += [member.path for member in members]
        assert not seen
        assert caught.value.exit_code is ExitCode.USAGE
    with repository.open("s1", [third, other]) as members:
        assert "cut.json" in [member.path for member in members]


def test_a_damaged_archive_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A flipped bit or a cut: the block fails, wherever it is."""
    key, recipient = identity()
    repository = ArchiveRepository(tmp_path / "backups", (recipient,))
    head = repository.write(stage(tmp_path, size=400_000)).snapshot
    path = tmp_path / "backups" / head.archive
    sound = path.read_bytes()
    for place in (10, 300, 70_000, len(sound) - 1):
        flipped = bytearray(sound)
        flipped[place] ^= 1
        for data in (bytes(flipped), sound[:place]):
            path.write_bytes(data)
            with pytest.raises(BackupError, match="cannot use s1"):
                read_all(repository, key)
    path.write_bytes(sound)
    with repository.open("s1", [key]) as rows:
        assert len(list(rows)) > 10


def read_all(repository: ArchiveRepository, key: object) -> None:
    with repository.open("s1", [key]) as members:
        for member in members:
            if member.body is not None:
                member.body.read()


def test_without_encryption(tmp_path: Path) -> None:
    """The archive is a plain frame of zstd, opened without an identity."""
    repository = ArchiveRepository(tmp_path / "backups", None)
    head = repository.write(stage(tmp_path)).snapshot
    assert (head.encrypt, head.archive, head.recipients) == ("none", "s1.tar.zst", 0)
    with repository.open("s1", []) as members:
        assert "cut.json" in [member.path for member in members]


def test_the_bound_of_the_size_holds(tmp_path: Path) -> None:
    """Random bytes, which do not compress, and many empty files with long names."""
    for index in range(300):
        (tmp_path / f"{'n' * 200}{index}").write_bytes(os.urandom(index))
    tar = StagedTar(tmp_path, AT)
    _key, recipient = identity()
    with tmp_path.with_suffix(".age").open("wb", buffering=0) as file:
        target = HashingFile(file.fileno())
        write_archive(tar.chunks(), target, parse_recipients((recipient,)))
    assert 0 < target.size < tar.total_bytes()
