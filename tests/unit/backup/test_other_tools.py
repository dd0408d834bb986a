"""Archives are read and made by age, zstd and tar: no format of our own."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support.staged_snapshots import cut_at, identity, stage
from tools.skipping import machine_lacks

from agentbox.backup.archive.keys import parse_identities
from agentbox.backup.archive.reading import compare, opened
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.heads import decode_head, encode


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    for tool in ("age", "age-keygen", "zstd", "tar", "ssh-keygen"):
        if shutil.which(tool) is None:
            machine_lacks(f"{tool}, which reads and makes archives beside agentbox")


def run(command: str, cwd: Path) -> None:
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=cwd, check=True)


def test_age_zstd_and_tar_open_an_archive(tmp_path: Path) -> None:
    """With a key of `age-keygen`, and one of `ssh-keygen`; every member has the head's hash."""
    run("age-keygen -o age.txt 2> out; age-keygen -y age.txt > age.pub", tmp_path)
    run("ssh-keygen -q -t ed25519 -N '' -C somebody -f ssh", tmp_path)
    recipients = [(tmp_path / name).read_text().strip() for name in ("age.pub", "ssh.pub")]
    repository = ArchiveRepository(tmp_path / "backups", recipients)
    head = repository.write(stage(tmp_path, size=500_000)).snapshot
    for key in ("age.txt", "ssh"):
        run(
            f"mkdir out.{key}; age -d -i {key} backups/{head.archive} | zstd -d "
            f"| tar x -C out.{key}",
            tmp_path,
        )
        for row in head.members:
            if "\\x" not in row.path:  # the one that is not UTF-8
                path = tmp_path / f"out.{key}" / row.path
                assert hashlib.sha256(path.read_bytes()).hexdigest() == row.sha256
        assert (tmp_path / f"out.{key}/branches/ag-1/work/away").is_symlink()
        identities = parse_identities((tmp_path / key).read_bytes(), key)
        with repository.open("s1", identities) as members:
            assert not compare(members, head.members)


def test_an_archive_that_they_made_verifies(tmp_path: Path) -> None:
    """Unpacked and packed again by tar, zstd and age: the head with the new hash describes it."""
    key, recipient = identity()
    repository = ArchiveRepository(tmp_path / "backups", (recipient,))
    head = repository.write(stage(tmp_path, size=500_000)).snapshot
    (tmp_path / "key").write_text(str(key))
    run(
        f"mkdir out; age -d -i key backups/s1.tar.zst.age | zstd -d | tar x -C out; "
        f"tar c --sort=name -C out . | zstd -q -19 | age -r {recipient} > backups/s1.tar.zst.age",
        tmp_path,
    )
    archive = (tmp_path / "backups/s1.tar.zst.age").read_bytes()
    assert [fault.file for fault in repository.verify("s1")] == ["s1.tar.zst.age"]
    wire = json.loads((tmp_path / "backups/s1.json").read_bytes())
    wire |= {"size": len(archive), "sha256": hashlib.sha256(archive).hexdigest(), "digest": ""}
    (tmp_path / "backups/s1.json").write_bytes(encode(type(head).from_wire(wire)))
    assert not repository.verify("s1")
    assert decode_head((tmp_path / "backups/s1.json").read_bytes(), "s1").size == len(archive)
    with repository.open("s1", [key]) as members:
        assert not compare(members, head.members)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("echo x >> state/pods/empty", "state/pods/empty: differs"),
        ("rm state/pods/empty", "state/pods/empty: is listed in the head and missing"),
        ("echo x > state/new", "state/new: is not listed"),
    ],
)
def test_one_that_says_something_else_does_not(tmp_path: Path, change: str, named: str) -> None:
    """Each difference to the head is named."""
    key, recipient = identity()
    repository = ArchiveRepository(tmp_path / "backups", (recipient,))
    head = repository.write(stage(tmp_path, cut_at(1))).snapshot
    (tmp_path / "key").write_text(str(key))
    run(
        f"mkdir out; age -d -i key backups/s1.tar.zst.age | zstd -d | tar x -C out; "
        f"(cd out; {change}); tar c -C out . | zstd -q | age -r {recipient} > made",
        tmp_path,
    )
    with (tmp_path / "made").open("rb") as made, opened(made, [key]) as members:
        faults = compare(members, head.members)
    assert [str(fault)[: len(named)] for fault in faults] == [named]


@pytest.mark.parametrize(
    "make",
    [
        "tar cP -C x ../secret",
        "tar c --transform 's,^,/,' -P secret",
        "mkfifo pipe; tar c pipe",
        "ln secret twin; tar c secret twin",
        "tar c secret secret --hard-dereference",
        "ln -s / twin; tar c --transform 's,^secret,twin/x,' twin secret",
        "cp secret twin; tar c --transform 's,^twin,secret/x,' twin secret",
    ],
)
def test_hostile_tars(tmp_path: Path, make: str) -> None:
    """Paths that leave the folder, devices, hard links, a file twice: refused by name."""
    from agentbox.backup.archive.reading import unpack
    from agentbox.backup.archive.streams import ArchiveDamaged

    key, recipient = identity()
    (tmp_path / "x").mkdir()
    (tmp_path / "target/in").mkdir(parents=True)
    run(f"echo s > secret; ({make}) | zstd -q | age -r {recipient} > made", tmp_path)
    with (
        (tmp_path / "made").open("rb") as made,
        pytest.raises(ArchiveDamaged, match=r"secret|pipe|twin"),
        opened(made, [key]) as members,
    ):
        unpack(members, (), tmp_path / "target/in")
    assert not list((tmp_path / "target").glob("secret"))
