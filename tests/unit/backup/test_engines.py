"""What holds for a repository of each engine: what was staged comes back, one writer, whole or not
at all, and retention.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.restic_repositories import restic_repository
from support.staged_snapshots import AT, CUT, cut_at, identity, stage
from support.trees import listing

from agentbox.backup.archive.reading import compare, unpack
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.errors import BackupError
from agentbox.backup.repository import Repository
from agentbox.backup.restic.repository import ResticRepository
from agentbox.backup.retention import Policy
from agentbox.core.errors import ExitCode

KEY, RECIPIENT = identity()
NOW = AT + timedelta(days=9)
Opened = Callable[[Path], ArchiveRepository | ResticRepository]


@pytest.fixture(params=["archive", "restic"])
def opened(request: pytest.FixtureRequest) -> Opened:
    if request.param == "archive":
        return lambda folder: ArchiveRepository(folder, (RECIPIENT,))
    return restic_repository


def filled(repository: Repository, root: Path, *numbers: int) -> None:
    for number in numbers:
        repository.write(stage(root / "staged", cut_at(number), size=2000, seed=number))


def test_what_was_staged_comes_back(opened: Opened, tmp_path: Path) -> None:
    """Content, kinds, modes, links, odd names and times, down to the nanosecond."""
    staged = stage(tmp_path, size=3_000_000)
    repository = opened(tmp_path / "backups")
    written = repository.write(staged)
    target = tmp_path / "restored"
    target.mkdir()
    with repository.open("s1", [KEY]) as members:
        assert not unpack(members, written.snapshot.members, target)
    assert listing(target, AT) == listing(staged, AT)
    assert (target / "state/pods/empty").stat().st_mtime_ns == 1_700_000_000_123_456_789


def test_heads_are_a_chain_and_tell_the_truth(opened: Opened, tmp_path: Path) -> None:
    """The hash of the one before, the members, and that of what is published; `latest` is the
    newest."""
    repository = opened(tmp_path / "backups")
    filled(repository, tmp_path, 1)
    written = repository.write(stage(tmp_path / "staged", cut_at(2), size=2000))
    first, second = (repository.get(id) for id in ("s1", "latest"))
    before = (tmp_path / "backups/s1.json").read_bytes()
    assert second.previous == hashlib.sha256(before).hexdigest()
    head = (tmp_path / "backups/s2.json").read_bytes()
    assert written.head_sha256 == hashlib.sha256(head).hexdigest()
    assert [row.id for row in repository.list()] == [first.id, second.id] == ["s1", "s2"]
    with repository.open("s2", [KEY]) as members:
        assert not compare(members, second.members)
    assert not repository.verify("s2")
    assert not repository.verify_all()


def test_two_writers(opened: Opened, tmp_path: Path) -> None:
    """The second is told; the first goes on, also with writes within its block."""
    staged = stage(tmp_path)
    one, two = (opened(tmp_path / "backups") for _ in range(2))
    with one.exclusively():
        with pytest.raises(BackupError, match="another backup is running") as caught:
            two.write(staged)
        assert (caught.value.exit_code, caught.value.reason) == (ExitCode.BUSY, "backup-running")
        one.write(staged)
    assert [head.id for head in two.list()] == ["s1"]


def test_nothing_is_begun_that_cannot_end(opened: Opened, tmp_path: Path) -> None:
    """Too little room, and an id that would be a path."""
    repository = opened(tmp_path / "backups")
    with pytest.raises(BackupError, match="are free where snapshots are") as caught:
        repository.write(stage(tmp_path), min_free=1 << 60)
    assert caught.value.needed > 1 << 60
    assert 0 < caught.value.free < caught.value.needed
    with pytest.raises(BackupError, match="not an id"):
        repository.write(stage(tmp_path / "bad", replace(CUT, id="..")))
    assert [path.name for path in (tmp_path / "backups").iterdir()] == ["lock"]


def test_what_fails_in_the_middle_is_no_snapshot(opened: Opened, tmp_path: Path) -> None:
    """A pipe among the files: it is named, and the next snapshot is made; its id is not used
    twice."""
    repository = opened(tmp_path / "backups")
    staged = stage(tmp_path)
    os.mkfifo(staged / "state/zz-pipe")
    with pytest.raises(BackupError, match="state/zz-pipe: it is not a file"):
        repository.write(staged)
    repository.clean()
    assert not repository.list()
    assert not repository.verify_all()
    (staged / "state/zz-pipe").unlink()
    repository.write(staged)
    assert not repository.verify_all()
    with pytest.raises(BackupError, match="there is one already"):
        repository.write(staged)


def test_retention(opened: Opened, tmp_path: Path) -> None:
    """Only what no rule keeps is removed, after the newest was verified; a dry run removes
    nothing."""
    repository = opened(tmp_path / "backups")
    filled(repository, tmp_path, 1, 2, 3)
    shutil.rmtree(tmp_path / "staged")
    with pytest.raises(BackupError, match="the newest snapshot s3 was not verified"):
        repository.prune(Policy(1), verified="s2", now=NOW)
    dry = repository.prune(Policy(1), verified="s3", now=NOW, dry_run=True)
    assert [head.id for head in repository.list()] == ["s1", "s2", "s3"]
    gone = repository.prune(Policy(1), verified="s3", now=NOW)
    assert [head.id for head in gone] == [head.id for head in dry] == ["s1", "s2"]
    assert not repository.clean()
    assert [head.id for head in repository.list()] == ["s3"]
    assert not repository.verify_all()
    repository.remove("s3")
    assert not repository.list()
