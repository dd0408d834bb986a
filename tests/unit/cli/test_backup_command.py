"""`agentbox backup` without a running box: recipients in the manifest, folders with snapshots, and
identities that are in no argument, environment or output.
"""

import io
import json
import os
import sqlite3
import subprocess
import tarfile
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from support.forked_program import run_command
from support.staged_snapshots import CUT, cut_at, filled, identity, stage

from agentbox import __version__
from agentbox.backup.archive.repository import ArchiveRepository

MANIFEST = '# mine\n[meta]\nschema_version = 1\nname = "kept"\n'
KEY, RECIPIENT = identity()


def agentbox(
    folder: Path, *words: str, stdin: bytes = b"", code: int = 0
) -> subprocess.CompletedProcess[str]:
    """One call of the real command, in a folder with a manifest; its exit code is checked."""
    done = run_command(
        *words,
        folder=folder,
        given=stdin,
        env={**os.environ, "AGENTBOX_STATE_DIR": str(folder / "state")},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agentbox.toml").write_text(MANIFEST)
    return tmp_path


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("backups")
    filled(root, RECIPIENT, 2)
    return root / "backups"


def test_init_makes_an_identity_and_prints_it_once(folder: Path) -> None:
    """It is on stdout only: no file below the folder has it. Its recipient is in the manifest."""
    done = agentbox(folder, "backup", "init")
    secret = next(row for row in done.stdout.splitlines() if not row.startswith("#"))
    assert secret.startswith("AGE-SECRET-KEY-1")
    assert "SECRET" not in done.stderr
    for path in folder.rglob("*"):
        assert not path.is_file() or secret not in path.read_text(errors="replace")
    text = (folder / "agentbox.toml").read_text()
    assert text.startswith(MANIFEST)
    (recipient,) = tomllib.loads(text)["backup"]["recipients"]
    staged = stage(folder / "staged")
    ArchiveRepository(folder / "backups", (recipient,)).write(staged)
    (folder / "key").write_text(done.stdout)  # the whole sheet
    words = ("backup", "export", "s1", "--plain", "--repository", "backups")
    agentbox(folder, *words, "--identity", "key", "--out", "plain.tar")
    with tarfile.open(folder / "plain.tar") as tar:
        assert "cut.json" in tar.getnames()
    again = agentbox(folder, "backup", "init", code=2)
    assert "has backup.recipients already" in again.stderr
    assert "SECRET" not in again.stdout


def test_init_with_recipients(folder: Path) -> None:
    """They go below a table that is there; nothing secret is printed."""
    text = MANIFEST + "\n[backup]  # nightly\nkeep = 3\n\n[memory]\n"
    (folder / "agentbox.toml").write_text(text.replace("\n[memory]\n", ""))
    done = agentbox(folder, "--json", "backup", "init", "--recipient", RECIPIENT)
    assert json.loads(done.stdout) == {"recipients": [RECIPIENT], "manifest": "agentbox.toml"}
    table = tomllib.loads((folder / "agentbox.toml").read_text())["backup"]
    assert table == {"keep": 3, "recipients": [RECIPIENT]}
    assert "[backup]  # nightly" in (folder / "agentbox.toml").read_text()


def test_init_changes_nothing_it_does_not_understand(folder: Path) -> None:
    """The line to write is in the hint."""
    text = MANIFEST + "backup.keep = 3\n"
    text = f"backup.keep = 3\n{MANIFEST}"
    (folder / "agentbox.toml").write_text(text)
    done = agentbox(folder, "backup", "init", "--recipient", RECIPIENT, code=2)
    assert f'recipients = ["{RECIPIENT}"]' in done.stderr
    assert (folder / "agentbox.toml").read_text() == text
    assert "public key" in agentbox(folder, "backup", "init", "--recipient", "age1x", code=2).stderr


def test_list_show_and_verify(folder: Path, repository: Path) -> None:
    """Of a folder, without a box."""
    at = ("--repository", str(repository))
    rows = json.loads(agentbox(folder, "--json", "backup", "list", *at).stdout)
    assert [row["id"] for row in rows] == ["s2", "s1"]
    shown = agentbox(folder, "backup", "show", "latest", *at).stdout
    assert "s2  2026-03-03T03:30:00.000Z" in shown
    assert "1 recipient" in shown
    assert "sound: the repository" in agentbox(folder, "backup", "verify", *at).stdout
    assert "has no such head" in agentbox(folder, "backup", "show", "s9", *at, code=1).stderr


def test_a_damaged_file_is_named(folder: Path) -> None:
    """By every verb that would use it."""
    filled(folder, RECIPIENT, 2)
    path = folder / "backups/s1.tar.zst.age"
    data = bytearray(path.read_bytes())
    data[200] ^= 4
    path.write_bytes(data)
    at = ("--repository", "backups")
    out = agentbox(folder, "backup", "verify", *at, code=1).stdout
    assert out == "damaged: s1.tar.zst.age: differs from its hash in the head\n"
    (folder / "key").write_text(str(KEY))
    deep = ("backup", "verify", "s1", "--deep", "--identity", "key", *at)
    assert agentbox(folder, *deep, code=1).stdout == out
    done = agentbox(folder, "backup", "export", "s1", "--out", "x", *at, code=1)
    assert "cannot export s1: s1.tar.zst.age" in done.stderr
    assert not (folder / "x").exists()


def test_an_exported_archive_is_the_stored_one(folder: Path, repository: Path) -> None:
    """Byte for byte."""
    agentbox(folder, "backup", "export", "s1", "--out", "copy.age", "--repository", str(repository))
    assert (folder / "copy.age").read_bytes() == (repository / "s1.tar.zst.age").read_bytes()


def test_identities(folder: Path, repository: Path) -> None:
    """On stdin or in a file. One on the command line is refused, and not repeated."""
    words = ("backup", "export", "s2", "--plain", "--repository", str(repository))
    done = agentbox(folder, *words, "--out", "a.tar", "--identity", "-", stdin=str(KEY).encode())
    assert "wrote s2" in done.stdout
    assert (
        "encrypted to 1 recipient, and no identity was given"
        in agentbox(folder, *words, code=2).stderr
    )
    (folder / "other").write_text(str(identity()[0]))
    assert (
        "no given identity belongs"
        in agentbox(folder, *words, "--identity", "other", code=2).stderr
    )
    told = agentbox(folder, *words, "--identity", str(KEY), code=2)
    assert "other users see it" in told.stderr
    assert str(KEY) not in told.stderr + told.stdout
    (folder / "other").write_text("AGE-SECRET-KEY-1NONSENSE")
    told = agentbox(folder, *words, "--identity", "other", code=2)
    assert "cannot read an identity from other" in told.stderr
    assert "NONSENSE" not in told.stderr


def test_prune(folder: Path) -> None:
    """By the rules of the manifest; a dry run removes nothing."""
    filled(folder, RECIPIENT, 4)
    (folder / "agentbox.toml").write_text(
        MANIFEST + "[backup]\nkeep = 1\nkeep_daily = 2\nkeep_weekly = 0\nkeep_monthly = 0\n"
    )
    at = ("--repository", "backups")
    words = ("--json", "backup", "prune", *at)
    assert json.loads(agentbox(folder, *words, "--dry-run").stdout)["removed"] == ["s1", "s2"]
    assert len(list(folder.glob("backups/s*.json"))) == 4
    assert json.loads(agentbox(folder, *words).stdout)["removed"] == ["s1", "s2"]
    assert "sound" in agentbox(folder, "backup", "verify", *at).stdout
    os.truncate(folder / "backups/s4.tar.zst.age", 10)
    assert "newest snapshot is damaged" in agentbox(folder, "backup", "prune", *at, code=1).stderr


def deep(folder: Path, staged: Path, code: int) -> str:
    """What `verify --deep` says of a snapshot that was staged so: its head tells no lie."""
    ArchiveRepository(folder / "deep", (RECIPIENT,)).write(staged)
    words = ("backup", "verify", "--deep", "--identity", "-", "--repository", "deep")
    return agentbox(folder, *words, stdin=str(KEY).encode(), code=code).stdout


def sound_stage(folder: Path) -> Path:
    """Staging with a store that is one; the journal of the other stages is not one."""
    staged = stage(folder / "staged", replace(CUT, seq=0))
    database = staged / "state/beads/beads.db"
    database.unlink()
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("y" * 500,)] * 200)
        connection.execute("CREATE INDEX i ON t (x)")
    connection.close()
    (staged / "state/events/000.jsonl").unlink()
    return staged


def test_deep_of_a_sound_snapshot(folder: Path) -> None:
    """Exit 0 and one line."""
    assert deep(folder, sound_stage(folder), 0) == "sound: s1\n"


def test_deep_names_a_damaged_store(folder: Path) -> None:
    """Pages that were damaged before the cut: every hash is right."""
    staged = sound_stage(folder)
    database = staged / "state/beads/beads.db"
    data = bytearray(database.read_bytes())
    data[4096 * 5 : 4096 * 6] = bytes(4096)
    database.write_bytes(data)
    assert deep(folder, staged, 1).startswith("damaged: state/beads/beads.db: ")


def test_a_number_of_recipients_is_told(folder: Path) -> None:
    """To who gives no identity."""
    _other, second = identity()
    repository = ArchiveRepository(folder / "backups", (RECIPIENT, second))
    repository.write(stage(folder / "staged", cut_at(1)))
    done = agentbox(folder, "backup", "verify", "--deep", "--repository", "backups", code=2)
    assert "it was encrypted to 2 recipients" in done.stderr


def test_a_folder_that_is_not_there(folder: Path) -> None:
    """Exit 2 with its name."""
    done = agentbox(folder, "backup", "list", "--repository", "nowhere", code=2)
    assert "nowhere" in done.stderr
    assert io.StringIO(done.stderr).readline().startswith("agentbox: cannot read the repository")


def test_another_box_needs_to_know_where_the_snapshot_is(folder: Path, tmp_path: Path) -> None:
    """Its own repository has no snapshot of the box that is copied: exit 2, before any is read."""
    said = agentbox(folder, "restore", "s1", "--into", "kept", code=2).stderr
    assert "cannot restore s1 into kept: its repository has none of another box" in said
    assert "--repository DIR" in said
    cut = replace(CUT, release=__version__)
    ArchiveRepository(tmp_path / "backups", (RECIPIENT,)).write(stage(tmp_path / "staged", cut))
    (folder / "key").write_text(str(KEY))
    words = ("restore", "s1", "--into", "kept", "--repository", "backups", "--dry-run")
    assert "s1 can be restored" in agentbox(folder, *words, "--identity", "key").stdout
