"""The engine restic, with the program itself; and our retention compared with that of restic."""

import os
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.staged_snapshots import AT, cut_at, head_at, stage
from tools.skipping import machine_lacks

from agentbox.backup.archive.reading import compare, unpack
from agentbox.backup.errors import BackupError
from agentbox.backup.repository import Repository
from agentbox.backup.restic.command import Restic
from agentbox.backup.restic.repository import ResticRepository
from agentbox.backup.retention import Policy, removable
from agentbox.core.errors import ExitCode


@pytest.fixture(scope="module", autouse=True)
def _restic() -> None:
    if shutil.which("restic") is None:
        machine_lacks("restic, which keeps snapshots of this engine")


def made(root: Path) -> ResticRepository:
    (root / "password").write_text("correct horse\n")
    restic = Restic(str(root / "restic"), root / "password")
    repository = ResticRepository(root / "heads", restic, verify_percent=100)
    repository.initialise()
    return repository


def test_what_was_staged_comes_back(tmp_path: Path) -> None:
    """Two snapshots; the second adds what changed only. Pruning the first leaves the second."""
    repository = made(tmp_path)
    subject: Repository = repository
    staged = tmp_path / "staged"
    first = subject.write(stage(staged, cut_at(1), size=2_000_000)).snapshot
    second = subject.write(stage(staged, cut_at(2), size=2_000_000)).snapshot
    assert (first.engine, first.sha256, second.previous != "") == ("restic", "", True)
    assert second.size < first.size / 10
    assert not subject.verify_all()
    (tmp_path / "out").mkdir()
    with subject.open("s1", ()) as members:
        assert not unpack(members, first.members, tmp_path / "out")
    assert (tmp_path / "out/state/pods/empty").stat().st_mtime == 1_700_000_000
    assert os.readlink(tmp_path / "out/branches/ag-1/work/away") == "/etc/passwd"  # noqa: PTH115
    gone = subject.prune(Policy(1), verified="s2", now=AT + timedelta(days=3))
    assert [row.id for row in gone] == ["s1"]
    assert not subject.verify_all()
    with subject.open("s2", ()) as members:
        assert not compare(members, second.members)


def test_faults_are_named(tmp_path: Path) -> None:
    """A snapshot that is gone in restic, a pack that is damaged, a snapshot without a head."""
    repository = made(tmp_path)
    repository.write(stage(tmp_path / "staged", cut_at(1)))
    restic = Restic(str(tmp_path / "restic"), tmp_path / "password")
    restic.run("test", "backup", str(tmp_path / "staged"))
    assert len(repository.clean()) == 1
    assert not repository.verify("s1")
    assert len(restic.rows("test", "snapshots")) == 1
    pack = max((tmp_path / "restic/data").rglob("*"), key=lambda path: path.stat().st_size)
    pack.chmod(0o600)
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.write_bytes(data)
    assert [fault.file for fault in repository.verify("s1")] == ["the repository of restic"]
    restic.run("test", "forget", *(str(row["id"]) for row in restic.rows("test", "snapshots")))
    assert "s1.json" in [fault.file for fault in repository.verify_all()]


def test_wrong_password_and_no_program(tmp_path: Path) -> None:
    """What restic says becomes a sentence of ours."""
    repository = made(tmp_path)
    repository.write(stage(tmp_path / "staged", cut_at(1)))
    (tmp_path / "password").write_text("wrong\n")
    with pytest.raises(BackupError, match="the password is not one of") as caught:
        repository.verify("s1")
    assert (caught.value.reason, caught.value.exit_code) == ("identity", ExitCode.USAGE)
    absent = Restic(str(tmp_path / "restic"), tmp_path / "password", program="no-such-restic")
    with pytest.raises(BackupError, match="no-such-restic is not installed"):
        ResticRepository(tmp_path / "heads", absent).verify("s1")


def test_our_retention_is_that_of_restic(tmp_path: Path) -> None:
    """12 snapshots over a year, 4 policies: `restic forget --dry-run` keeps the same ones."""
    made(tmp_path)
    restic = Restic(str(tmp_path / "restic"), tmp_path / "password")
    rng = random.Random(7)
    start = datetime(2025, 1, 1, tzinfo=UTC)
    times = sorted({start + timedelta(hours=rng.randrange(400 * 24)) for _ in range(12)})
    (tmp_path / "one").write_bytes(b"x")
    for at in times:
        moment = at.strftime("%Y-%m-%d %H:%M:%S")
        restic.run("test", "backup", "--host", "lab", "--time", moment, "one", cwd=tmp_path)
    snapshots = [head_at(number, at) for number, at in enumerate(times)]
    for policy in [
        Policy(1 + rng.randrange(4), *(rng.randrange(6) for _ in range(3))) for _ in range(6)
    ]:
        words = [f"--keep-last={policy.keep}"]
        if policy.daily:
            words.append(f"--keep-daily={policy.daily}")
        if policy.weekly:
            words.append(f"--keep-weekly={policy.weekly}")
        if policy.monthly:
            words.append(f"--keep-monthly={policy.monthly}")
        (group,) = restic.rows("test", "forget", "--dry-run", *words)
        theirs = {row["time"][:19] for row in group["remove"] or ()}
        ours = removable(snapshots, policy, now=times[-1])
        assert {row.time.isoformat()[:19] for row in ours} == theirs, policy
