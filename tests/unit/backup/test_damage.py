"""Whatever happens to a file of a repository, `verify` names that file."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.staged_snapshots import filled, identity

from agentbox.backup.archive.repository import ArchiveRepository

SNAPSHOTS = 3
DAMAGES = 500
Damage = Callable[[random.Random, Path, list[Path]], set[str]]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("damage")
    filled(root, identity()[1], SNAPSHOTS)
    return root / "backups"


def flip(rng: random.Random, path: Path, _others: list[Path]) -> set[str]:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return {path.name}


def cut(rng: random.Random, path: Path, _others: list[Path]) -> set[str]:
    os.truncate(path, rng.randrange(path.stat().st_size))
    return {path.name}


def cut_out(rng: random.Random, path: Path, _others: list[Path]) -> set[str]:
    data = path.read_bytes()
    place = rng.randrange(len(data))
    path.write_bytes(data[:place] + data[place + 1 :])
    return {path.name}


def append(rng: random.Random, path: Path, _others: list[Path]) -> set[str]:
    with path.open("ab") as file:
        file.write(rng.randbytes(rng.randrange(1, 9)))
    return {path.name}


def remove(_rng: random.Random, path: Path, _others: list[Path]) -> set[str]:
    path.unlink()
    return {path.name}


def swap(rng: random.Random, path: Path, others: list[Path]) -> set[str]:
    """Two files of one kind; the record, of which there is one, with a head."""
    kind = [other for other in others if other.suffix == path.suffix and other != path]
    other = rng.choice(kind)
    between = path.with_name("between")
    path.rename(between)
    other.rename(path)
    between.rename(other)
    return {path.name, other.name}


KINDS: tuple[Damage, ...] = (flip, cut, cut_out, append, remove, swap)


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != "lock")


def test_each_damage_is_named(repository: Path) -> None:
    """500 damages, each of one file or one pair, by a seed that failures print."""
    rng = random.Random(20260301)
    sound = {path.name: path.read_bytes() for path in files_of(repository)}
    subject = ArchiveRepository(repository, None)
    assert not subject.verify_all()
    missed = []
    for number in range(DAMAGES):
        files = files_of(repository)
        path, kind = files[number % len(files)], KINDS[number // len(files) % len(KINDS)]
        expected = kind(rng, path, files)
        named = {fault.file for fault in subject.verify_all()}
        if not expected <= named:
            missed.append((number, kind.__name__, expected, named))
        for name in {*expected, *named} & set(sound):
            (repository / name).write_bytes(sound[name])
    assert not missed
    assert not subject.verify_all()


def test_a_sound_file_is_not_named(repository: Path, tmp_path: Path) -> None:
    """The others stay usable: only the damaged snapshot is refused."""
    folder = tmp_path / "copy"
    shutil.copytree(repository, folder)
    subject = ArchiveRepository(folder, None)
    flip(random.Random(1), folder / "s2.tar.zst.age", [])
    assert {fault.file for fault in subject.verify_all()} == {"s2.tar.zst.age"}
    assert not subject.verify("s1")
    assert [fault.file for fault in subject.verify("s2")] == ["s2.tar.zst.age"]


@pytest.mark.parametrize("number", range(1, SNAPSHOTS + 1))
def test_a_removed_snapshot_is_missed(repository: Path, tmp_path: Path, number: int) -> None:
    """Head and archive gone together: the head after it, or the record, names one that is gone."""
    folder = tmp_path / "copy"
    shutil.copytree(repository, folder)
    (folder / f"s{number}.json").unlink()
    (folder / f"s{number}.tar.zst.age").unlink()
    witness = "repository.json" if number == SNAPSHOTS else f"s{number + 1}.json"
    faults = ArchiveRepository(folder, None).verify_all()
    assert [fault.file for fault in faults] == [witness]
    assert "gone and was not pruned" in faults[0].reason


def test_a_head_that_was_replaced_with_its_digest(repository: Path, tmp_path: Path) -> None:
    """Who rewrites a head, digest and all, is found by the chain."""
    from dataclasses import replace

    from agentbox.backup.heads import encode

    folder = tmp_path / "copy"
    shutil.copytree(repository, folder)
    subject = ArchiveRepository(folder, None)
    forged = replace(subject.get("s2"), box="other", digest="")
    (folder / "s2.json").write_bytes(encode(forged))
    assert [fault.file for fault in subject.verify_all()] == ["s3.json"]
