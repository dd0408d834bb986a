"""What a killed writer or pruner leaves in restic, and what is found again in it."""

import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.restic_repositories import (
    readable,
    restic,
    restic_repository,
)
from support.staged_snapshots import AT, cut_at, stage

from agentbox.backup.restic import command
from agentbox.backup.retention import Policy

NOW = AT + timedelta(days=9)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshot s1, and what was staged for s2."""
    root = tmp_path_factory.mktemp("restic")
    restic_repository(root / "backups").write(stage(root / "staged", cut_at(1), size=1000))
    stage(root / "staged", cut_at(2), size=70_000)
    return root


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A repository with s1 of its own."""
    shutil.copytree(sound / "backups", tmp_path / "backups")
    return tmp_path / "backups"


def tags_of(folder: Path) -> list[str]:
    return restic(folder, "snapshots", "--compact").splitlines()


def killed_at_start(work: Callable[[], object], number: int) -> bool:
    """Runs `work` in a fork that is killed when it starts restic for that time; whether it was."""
    pid = os.fork()
    if not pid:
        status, start, count = 1, command.Restic._start, 0

        def counted(self: command.Restic, *arguments: Any, **streams: Any) -> Any:
            nonlocal count
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return start(self, *arguments, **streams)

        try:
            command.Restic._start = counted  # type: ignore[method-assign]
            work()
            status = 0
        finally:
            os._exit(status)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return True
    assert os.waitstatus_to_exitcode(status) == 0
    return False


def test_a_writer_killed_at_each_step(sound: Path, tmp_path: Path) -> None:
    """Before each start of restic: no head without its snapshot, nothing of it left after `clean`,
    and the next one is made."""
    folder, number = tmp_path / "backups", 0
    while True:
        shutil.copytree(sound / "backups", folder)
        if not killed_at_start(
            lambda: restic_repository(folder).write(sound / "staged/s2"), number
        ):
            break
        repository = restic_repository(folder)
        assert readable(repository) == ["s1"]
        repository.clean()
        assert [tags for tags in tags_of(folder) if "s2" in tags] == []
        repository.write(sound / "staged/s2")
        assert readable(repository) == ["s1", "s2"]
        assert not repository.verify_all()
        shutil.rmtree(folder)
        number += 1
    assert number >= 2


def test_a_writer_killed_in_the_middle_of_the_tar(folder: Path, sound: Path) -> None:
    """restic takes what it got for the whole: without a head it is nothing, and goes."""
    pid = os.fork()
    if not pid:
        store = command.Restic.store

        def cut_off(
            self: command.Restic, action: str, name: str, chunks: Iterable[bytes], **options: Any
        ) -> str:
            def some() -> Iterator[bytes]:
                for count, chunk in enumerate(chunks):
                    if count == 12:
                        os.kill(os.getpid(), signal.SIGKILL)
                    yield chunk

            return store(self, action, name, some(), **options)

        try:
            command.Restic.store = cut_off  # type: ignore[method-assign]
            restic_repository(folder).write(sound / "staged/s2")
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    while list((folder / "restic/locks").iterdir()):  # restic itself goes on to its end
        pass
    repository = restic_repository(folder)
    assert readable(repository) == ["s1"]
    assert any(name.startswith("restic/") for name in repository.clean())
    assert not repository.clean()
    assert not repository.verify_all()


def test_a_pruner_killed_between_the_folder_and_restic(folder: Path, sound: Path) -> None:
    """A snapshot is there whole or not at all: what it left is found again, and pruned."""
    repository = restic_repository(folder)
    repository.write(sound / "staged/s2")
    for number in (0, 1):
        assert killed_at_start(
            lambda: restic_repository(folder).prune(Policy(1), verified="s2", now=NOW), number
        )
        repository.clean()
        assert readable(repository) == ["s1", "s2"]
    repository.prune(Policy(1), verified="s2", now=NOW)
    assert not repository.clean()
    assert readable(repository) == ["s2"]
    assert not repository.verify_all()


def test_heads_that_are_lost_are_found_again(folder: Path, tmp_path: Path) -> None:
    """In restic itself, by the box and by a host that has nothing but the password; the head is the
    same to the byte."""
    before = (folder / "s1.json").read_bytes()
    (folder / "s1.json").unlink()
    (folder / "repository.json").unlink()
    assert not restic_repository(folder).clean()
    assert (folder / "s1.json").read_bytes() == before
    elsewhere = restic_repository(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/restic").symlink_to(folder / "restic")
    elsewhere.find()
    assert readable(elsewhere) == ["s1"]


def test_snapshots_of_others_are_left_alone(folder: Path) -> None:
    """Those of another box and of another program in the same repository."""
    restic(folder, "backup", "--host", "lab", str(folder / "s1.json"))
    restic(folder, "backup", "--host", "other", "--tag", "agentbox,s9", str(folder / "s1.json"))
    before = tags_of(folder)
    repository = restic_repository(folder)
    assert not repository.clean()
    assert tags_of(folder) == before
    assert [head.id for head in repository.list()] == ["s1"]
