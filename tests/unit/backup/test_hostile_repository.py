"""A box writes its repository itself, and the host reads and prunes it as root."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from skipping import machine_lacks
from support.staged_snapshots import cut_at, filled, identity, stage

from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.errors import BackupError
from agentbox.backup.export import file_chunks
from agentbox.backup.files import MAX_HEAD, read_bounded
from agentbox.backup.heads import encode
from agentbox.backup.retention import Policy


@pytest.fixture
def repository(tmp_path: Path) -> ArchiveRepository:
    return filled(tmp_path, identity()[1], 3)


@pytest.mark.parametrize("where", ["absolute", "above", "other"])
def test_no_head_names_a_file_elsewhere(
    repository: ArchiveRepository, tmp_path: Path, where: str
) -> None:
    """`prune` removes no file that a forged head names, and nothing opens it."""
    victim = tmp_path / "victim"
    victim.write_text("kept")
    archive = {"absolute": str(victim), "above": "../victim", "other": "s2.tar.zst.age"}[where]
    head = repository.get("s1")
    (repository.folder / "s1.json").write_bytes(encode(replace(head, archive=archive)))
    repository.prune(Policy(1), verified="s3")
    assert victim.read_text() == "kept"
    with pytest.raises(BackupError, match="names an archive that is not its own"):
        repository.get("s1")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_without_end(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [pipe, link_without_end])
@pytest.mark.parametrize("name", ["s2.json", "repository.json", "s2.tar.zst.age"])
def test_what_is_not_a_regular_file_is_named(
    repository: ArchiveRepository, make: Callable[[Path], None], name: str
) -> None:
    """Neither a pipe nor a link to a device is read; the reader does not wait."""
    (repository.folder / name).unlink()
    make(repository.folder / name)
    assert name in {fault.file for fault in repository.verify_all()}


@pytest.mark.parametrize("make", [pipe, link_without_end])
def test_an_archive_that_is_not_a_file_is_not_sent(
    repository: ArchiveRepository, make: Callable[[Path], None]
) -> None:
    """`backup export` on the host ends."""
    path = repository.folder / "s2.tar.zst.age"
    path.unlink()
    make(path)
    with pytest.raises(OSError, match="not a regular file"):
        next(file_chunks(path))


def test_a_lock_that_is_not_a_file_is_refused(repository: ArchiveRepository) -> None:
    """A pipe in its place makes nobody wait."""
    (repository.folder / "lock").unlink()
    pipe(repository.folder / "lock")
    with pytest.raises(BackupError, match="not a regular file"):
        repository.prune(Policy(1), verified="s3")


def test_a_head_has_a_bound(tmp_path: Path) -> None:
    """A sparse file costs the box nothing."""
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", MAX_HEAD + 1)
    with pytest.raises(OSError, match="has more than"):
        read_bounded(tmp_path / "large")


def test_staging_elsewhere_is_not_emptied(repository: ArchiveRepository, tmp_path: Path) -> None:
    """The link goes, what it points to stays."""
    (tmp_path / "elsewhere/kept").mkdir(parents=True)
    (repository.folder / "staging").symlink_to(tmp_path / "elsewhere")
    repository.clean()
    assert (tmp_path / "elsewhere/kept").is_dir()
    assert not (repository.folder / "staging").is_symlink()


def test_the_box_can_write_after_root_has_pruned(
    repository: ArchiveRepository, tmp_path: Path
) -> None:
    """What the host writes as root has the owner of the folder."""
    if os.geteuid():
        machine_lacks("root")
    os.chown(repository.folder, 4321, 4321)
    (repository.folder / "lock").unlink()
    repository.prune(Policy(1), verified="s3")
    repository.write(stage(tmp_path / "staged", cut_at(9), size=10))
    for name in ("lock", "repository.json", "s9.json", "s9.tar.zst.age"):
        status = (repository.folder / name).stat()
        assert (status.st_uid, status.st_gid) == (4321, 4321), name
