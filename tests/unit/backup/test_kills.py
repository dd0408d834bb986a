"""Writers that are killed at each call that changes a file, and repositories without room."""

import os
import resource
import shutil
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from support.full_disk import fill
from support.killed_writer import run_killed
from support.small_disk import small_disk
from support.staged_snapshots import AT, cut_at, filled, identity, stage

from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.deep import verify_deep
from agentbox.backup.errors import BackupError
from agentbox.backup.retention import Policy
from agentbox.core.errors import AgentboxError, ExitCode

KEY, RECIPIENT = identity()
__all__ = ["small_disk"]
NOW = AT + timedelta(days=9)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kills")
    filled(root, RECIPIENT, 2)
    stage(root / "staged", cut_at(3), size=70_000)
    return root


def subject(folder: Path) -> ArchiveRepository:
    return ArchiveRepository(folder, (RECIPIENT,))


def readable(repository: ArchiveRepository) -> list[str]:
    """Ids of the snapshots, each of which is sound and read to its end."""
    ids = []
    for head in repository.list():
        assert not repository.verify(head.id)
        with repository.open(head.id, [KEY]) as members:
            assert sum(member.kind == "file" for member in members) == len(head.members)
        ids.append(head.id)
    return ids


@pytest.mark.parametrize("half", [False, True])
def test_a_writer_killed_anywhere(sound: Path, tmp_path: Path, half: bool) -> None:
    """No head without its archive, nothing left after `clean`, and the next write goes on."""
    number, published = 0, 0
    folder = tmp_path / "backups"
    while True:
        shutil.copytree(sound / "backups", folder)
        killed = run_killed(lambda: subject(folder).write(sound / "staged/s3"), number, half=half)
        if not killed:
            break
        repository = subject(folder)
        before = readable(repository)
        published += "s3" in before
        assert before in (["s1", "s2"], ["s1", "s2", "s3"]), number
        repository.clean()
        assert not repository.verify_all(), number
        left = {path.name for path in folder.iterdir()} - {"lock", "repository.json"}
        assert left == {f"{id}{end}" for id in before for end in (".json", ".tar.zst.age")}
        if "s3" not in before:
            repository.write(sound / "staged/s3")
        assert [head.id for head in repository.list()] == ["s1", "s2", "s3"]
        assert not repository.verify_all(), number
        shutil.rmtree(folder)
        number += 1
    assert number > 10
    assert 0 < published < number


def test_a_pruner_killed_anywhere(sound: Path, tmp_path: Path) -> None:
    """Snapshots are there whole or not at all; `clean` finishes what was begun."""
    number, folder = 0, tmp_path / "backups"
    while True:
        shutil.copytree(sound / "backups", folder)
        subject(folder).write(sound / "staged/s3")
        if not run_killed(lambda: subject(folder).prune(Policy(1), verified="s3", now=NOW), number):
            break
        repository = subject(folder)
        assert "s3" in readable(repository)
        repository.clean()
        repository.prune(Policy(1), verified="s3", now=NOW)
        assert not repository.verify_all(), number
        left = {path.name for path in folder.iterdir()}
        assert left == {"lock", "repository.json", "s3.json", "s3.tar.zst.age"}
        shutil.rmtree(folder)
        number += 1
    assert number > 6


def test_staging_of_a_killed_cut_is_removed(sound: Path, tmp_path: Path) -> None:
    """But not that of the cut that is to be written."""
    folder = tmp_path / "backups"
    shutil.copytree(sound / "backups", folder)
    repository = subject(folder)
    for id in ("old", "new"):
        (repository.staging / id / "state").mkdir(parents=True)
    assert repository.clean(keep="new") == ["staging/old"]
    assert [path.name for path in repository.staging.iterdir()] == ["new"]


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    """At each fill level: the reason, the last good snapshot, nothing left behind; then it works."""
    repository = filled_there(small_disk, tmp_path)
    staged = stage(tmp_path / "staged", cut_at(2), size=300_000)
    names = {path.name for path in small_disk.joinpath("backups").iterdir()}
    with pytest.raises(BackupError) as caught:
        repository.write(staged, min_free=1 << 20)
    assert caught.value.reason == "no-room"
    reasons = []
    for spare in range(0, 320_000, 40_000):
        fill(small_disk / "ballast")
        os.truncate(small_disk / "ballast", (small_disk / "ballast").stat().st_size - spare)
        with pytest.raises(BackupError, match="cannot make a backup: it is full") as caught:
            repository.write(staged, min_free=-(1 << 20))  # as if there were room
        reasons.append((caught.value.reason, caught.value.exit_code))
        assert {path.name for path in small_disk.joinpath("backups").iterdir()} == names
        assert readable(repository) == ["s1"]
        (small_disk / "ballast").unlink()
    assert reasons == [("full", ExitCode.PREREQUISITE)] * 8
    repository.write(staged)
    assert readable(repository) == ["s1", "s2"]
    assert not repository.verify_all()


def test_no_room_to_verify(small_disk: Path, tmp_path: Path) -> None:
    """The folder for what is decrypted is full: it is not taken for a damaged snapshot."""
    repository = ArchiveRepository(tmp_path / "backups", (RECIPIENT,))
    head = repository.write(stage(tmp_path / "staged", size=2_000_000)).snapshot
    with pytest.raises(AgentboxError, match=f"it does not fit into {small_disk}") as caught:
        verify_deep(repository, head, [KEY], small_disk)
    assert caught.value.exit_code is ExitCode.PREREQUISITE


def test_a_read_only_disk(small_disk: Path, tmp_path: Path) -> None:
    """It can still be listed and verified."""
    repository = filled_there(small_disk, tmp_path)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(BackupError, match="it is read-only") as caught:
        repository.write(stage(tmp_path / "staged", cut_at(2)))
    assert (caught.value.reason, caught.value.exit_code) == ("read-only", ExitCode.PREREQUISITE)
    assert readable(repository) == ["s1"]
    assert not repository.verify_all()


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """Exit 3 with a reason, no traceback."""
    (tmp_path / "backups").write_bytes(b"")
    with pytest.raises(BackupError) as caught:
        subject(tmp_path / "backups").write(stage(tmp_path / "staged"))
    assert caught.value.exit_code is ExitCode.PREREQUISITE
    assert caught.value.reason in ("gone", "unusable")


def test_a_bound_of_the_size_of_files(sound: Path, tmp_path: Path) -> None:
    """What a quota does: EFBIG in the middle of the archive."""
    folder = tmp_path / "backups"
    shutil.copytree(sound / "backups", folder)

    def bounded() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        with pytest.raises(BackupError, match="cannot be that large"):
            subject(folder).write(sound / "staged/s3")

    assert not run_killed(bounded, -1)
    assert readable(subject(folder)) == ["s1", "s2"]
    assert not list(folder.glob(".*"))


def filled_there(disk: Path, elsewhere: Path) -> ArchiveRepository:
    repository = ArchiveRepository(disk / "backups", (RECIPIENT,))
    repository.write(stage(elsewhere / "staged", cut_at(1), size=1000))
    return repository
