"""What is restic's own: what snapshots share, its password and locks, and its faults."""

import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.restic_repositories import (
    PASSWORD,
    readable,
    restic_repository,
    stored_bytes,
)
from support.small_disk import small_disk
from support.staged_snapshots import AT, cut_at, stage

from agentbox.backup.deep import verify_deep
from agentbox.backup.errors import BackupError
from agentbox.backup.restic.repository import ResticRepository
from agentbox.backup.restic.settings import ResticSettings
from agentbox.backup.retention import Policy
from agentbox.core.errors import ExitCode

NOW = AT + timedelta(days=9)
__all__ = ["small_disk"]


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


def test_an_unchanged_snapshot_adds_little(tmp_path: Path) -> None:
    """Of 30 MB that cannot be compressed, less than a tenth for the second time; anybody with the
    password opens it with restic and tar."""
    folder = tmp_path / "backups"
    repository = restic_repository(folder)
    repository.write(stage(tmp_path / "staged", cut_at(1), size=30_000_000))
    first = stored_bytes(folder)
    shutil.rmtree(tmp_path / "staged")
    repository.write(stage(tmp_path / "staged", cut_at(2), size=30_000_000))
    assert first > 30_000_000
    assert stored_bytes(folder) - first < 3_000_000
    dumped = f"RESTIC_PASSWORD='{PASSWORD}' restic -r {folder}/restic --no-cache dump latest --tag agentbox snapshot.tar"
    printed = subprocess.run(
        ["sh", "-c", f"{dumped} | tar tf - cut.json"], check=True, capture_output=True, text=True
    )
    assert printed.stdout == "cut.json\n"


def test_no_credential_in_an_argument(folder: Path, tmp_path: Path) -> None:
    """A program in place of restic and ssh keeps its arguments: neither password nor key is there,
    the key is a private file, and the host is known by its key alone."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin/restic"
    script.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/argv\n'
        f'key=$(echo "$@" | sed "s/.* -i \\([^ ]*\\) .*/\\1/")\n'
        f'cat "$key" > {tmp_path}/key; stat -c %a "$key" > {tmp_path}/mode\n'
        f'cat "$(dirname "$key")/known_hosts" > {tmp_path}/known\necho null\n'
    )
    script.chmod(0o755)
    settings = ResticSettings(
        password="word-of-mouth",
        verify_percent=0,
        repository="sftp://box@backups.example:2222//srv/box",
        ssh_key="PRIVATE-KEY",
        ssh_host_key="ssh-ed25519 AAAAkey",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        ResticRepository(folder, settings).clean()
    argv = (tmp_path / "argv").read_text()
    assert "-p 2222 -l box backups.example -s sftp" in argv
    assert "StrictHostKeyChecking=yes" in argv
    assert "word-of-mouth" not in argv + repr(settings)
    assert "PRIVATE-KEY" not in argv + repr(settings)
    assert (tmp_path / "key").read_text() == "PRIVATE-KEY\n"
    assert (tmp_path / "mode").read_text() == "600\n"
    assert (tmp_path / "known").read_text() == "repository ssh-ed25519 AAAAkey\n"


def test_without_the_program(folder: Path) -> None:
    """It is named, with what installs it."""
    repository = ResticRepository(folder, ResticSettings(PASSWORD, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/nonexistent")
        with pytest.raises(BackupError) as caught:
            repository.verify("s1")
    assert "there is no program restic on this machine" in caught.value.message
    assert "apt install restic" in caught.value.hint


def test_another_password(folder: Path, sound: Path) -> None:
    """Exit 2 for what reads and what writes; no second repository is made."""
    repository = restic_repository(folder, password="another")
    before = stored_bytes(folder)
    calls: list[Callable[[], Any]] = [
        lambda: repository.write(sound / "staged/s2"),
        lambda: repository.verify("s1"),
        lambda: readable(repository),
    ]
    for call in calls:
        with pytest.raises(BackupError, match="its password is another one") as caught:
            call()
        assert (caught.value.reason, caught.value.exit_code) == ("password", ExitCode.USAGE)
        assert "another" not in caught.value.message.replace("is another one", "")
    assert stored_bytes(folder) == before


def test_a_repository_that_is_gone_is_not_made_again(folder: Path, sound: Path) -> None:
    """Exit 3; the heads stay, and no empty repository takes its place."""
    shutil.rmtree(folder / "restic")
    repository = restic_repository(folder)
    for call in (lambda: repository.write(sound / "staged/s2"), lambda: repository.verify("s1")):
        with pytest.raises(BackupError, match="no repository of restic any more") as caught:
            call()
        assert (caught.value.reason, caught.value.exit_code) == ("gone", ExitCode.PREREQUISITE)
    assert not (folder / "restic").exists()
    assert [head.id for head in repository.list()] == ["s1"]


def test_an_address_where_nobody_listens(tmp_path: Path, sound: Path) -> None:
    """Told at once, with the key of the manifest that has the address."""
    repository = restic_repository(tmp_path / "backups", address="rest:http://127.0.0.1:9/")
    with pytest.raises(BackupError, match="its host cannot be reached") as caught:
        repository.write(sound / "staged/s2")
    assert caught.value.reason == "unreachable"
    assert "backup.repository" in caught.value.hint


def test_damage_is_found(folder: Path, tmp_path: Path) -> None:
    """A flipped bit and a file that is gone, by their names; what is read of it is refused."""
    (tmp_path / "deep").mkdir()
    repository = restic_repository(folder, percent=100)
    pack = max((folder / "restic/data").glob("*/*"), key=lambda path: path.stat().st_size)
    sound = pack.read_bytes()
    pack.chmod(0o600)
    pack.write_bytes(bytes([sound[0] ^ 1]) + sound[1:])
    assert pack.name[:8] in " ".join(fault.file for fault in repository.verify("s1"))
    with pytest.raises(BackupError):
        verify_deep(repository, repository.get("s1"), [], tmp_path / "deep")
    pack.write_bytes(sound)
    assert not repository.verify_all()
    snapshot = repository.get("s1").archive
    (folder / "restic/snapshots" / snapshot).unlink()
    faults = [str(fault) for fault in repository.verify("s1")]
    assert faults == [f"s1.json: names {snapshot[:8]} of restic, which is not there"]


def test_a_lock_of_another_and_of_a_killed_restic(folder: Path, sound: Path) -> None:
    """While another program stores something nothing can be pruned (exit 7), and it goes on; the
    lock that it leaves when it is killed does not stay."""
    repository = restic_repository(folder)
    repository.write(sound / "staged/s2")
    argv = ["restic", "-r", folder / "restic", "--no-cache", "backup", "--stdin"]
    environment = {**os.environ, "RESTIC_PASSWORD": PASSWORD}
    other = subprocess.Popen(
        argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    try:
        while not list((folder / "restic/locks").iterdir()):
            assert other.poll() is None
        with pytest.raises(BackupError, match="another program has locked it") as caught:
            repository.prune(Policy(1), verified="s2", now=NOW)
        assert caught.value.exit_code is ExitCode.BUSY
        assert "restic unlock" in caught.value.hint
    finally:
        other.kill()
        other.communicate()
    assert list((folder / "restic/locks").iterdir())
    repository.clean()
    assert readable(repository) == ["s1", "s2"]
    repository.prune(Policy(1), verified="s2", now=NOW)
    assert not list((folder / "restic/locks").iterdir())
    assert readable(repository) == ["s2"]


def test_a_full_disk(small_disk: Path, sound: Path, tmp_path: Path) -> None:
    """The reason, the last good snapshot; then it works."""
    folder = small_disk / "backups"
    shutil.copytree(sound / "backups", folder)
    repository = restic_repository(folder)
    with (small_disk / "ballast").open("wb") as ballast:
        free = shutil.disk_usage(small_disk).free
        ballast.write(bytes(free - 60_000))
    with pytest.raises(BackupError, match="it is full") as caught:
        repository.write(stage(tmp_path, cut_at(2), size=300_000), min_free=-(1 << 24))
    assert (caught.value.reason, caught.value.exit_code) == ("full", ExitCode.PREREQUISITE)
    assert readable(repository) == ["s1"]
    (small_disk / "ballast").unlink()
    repository.clean()
    repository.write(tmp_path / "s2")
    assert readable(repository) == ["s1", "s2"]
    assert not repository.verify_all()


def test_a_read_only_disk(small_disk: Path, sound: Path) -> None:
    """It can still be listed, read and verified."""
    shutil.copytree(sound / "backups", small_disk / "backups")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    repository = restic_repository(small_disk / "backups")
    with pytest.raises(BackupError, match="it is read-only"):
        repository.write(sound / "staged/s2")
    assert readable(repository) == ["s1"]
    assert not repository.verify_all()
