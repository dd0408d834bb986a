"""A repository behind a real sshd: made, read and pruned; keys that do not fit are told apart."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.sftp_server import SftpServer, sftp_server
from support.staged_snapshots import AT, cut_at, stage

from agentbox.backup.archive.reading import compare
from agentbox.backup.errors import BackupError
from agentbox.backup.restic.failures import failure
from agentbox.backup.restic.repository import ResticRepository
from agentbox.backup.restic.settings import ResticSettings
from agentbox.backup.retention import Policy
from agentbox.core.errors import ExitCode


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    made = sftp_server(tmp_path_factory.mktemp("sftp"))
    with made.running():
        yield made


def settings(server: SftpServer) -> ResticSettings:
    return ResticSettings(
        password="word",
        verify_percent=100,
        repository=server.address,
        ssh_key=server.key,
        ssh_host_key=server.host_key,
    )


def test_a_remote_repository(server: SftpServer, tmp_path: Path) -> None:
    """The folder has heads and a cache, the host all else; a host with the password alone reads
    it."""
    repository = ResticRepository(tmp_path / "backups", settings(server), "lab")
    for number in (1, 2):
        repository.write(stage(tmp_path / "staged", cut_at(number), size=2000))
    assert not (tmp_path / "backups/restic").exists()
    assert (server.store / "config").is_file()
    assert not repository.verify_all()
    repository.prune(Policy(1), verified="s2", now=AT + timedelta(days=9))
    elsewhere = ResticRepository(tmp_path / "elsewhere", settings(server))
    elsewhere.find()
    assert [head.id for head in elsewhere.list()] == ["s2"]
    with elsewhere.open("latest", []) as members:
        assert not compare(members, elsewhere.get("s2").members)


def test_keys_that_do_not_fit(server: SftpServer, tmp_path: Path) -> None:
    """Another host than was named, and a box that the host does not know."""
    (tmp_path / "other").mkdir()
    other = sftp_server(tmp_path / "other")
    cases = (
        (replace(settings(server), ssh_host_key=other.host_key), "its host showed another key"),
        (replace(settings(server), ssh_key=other.key), "its host does not let the box in"),
        (replace(settings(server), repository=other.address), "its host cannot be reached"),
    )
    staged = stage(tmp_path / "staged", size=2000)
    for given, why in cases:
        with pytest.raises(BackupError, match=why) as caught:
            ResticRepository(tmp_path / "backups", given).write(staged)
        assert caught.value.reason == "unreachable"
        assert caught.value.exit_code is ExitCode.PREREQUISITE
        assert "backup.repository" in caught.value.hint


def test_ssh_without_a_user_is_told() -> None:
    """A box of the process engine has an id that its host may not know; in an image it has a
    name."""
    argv = ["setpriv", "--reuid", "54321", "--clear-groups", "ssh", "-F", "none", "127.0.0.1"]
    said = subprocess.run(argv, capture_output=True, text=True, check=False).stderr
    error = failure("make a backup", said)
    assert "ssh needs a user of this host with the id that the box runs as" in error.message
    assert error.reason == "unreachable"
