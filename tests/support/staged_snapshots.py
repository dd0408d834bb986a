"""Staging directories as a cut makes them, small, and repositories for their snapshots."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyrage

from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.heads import new_head
from agentbox.contracts.backups import Cut, Snapshot
from agentbox.core.canonical import canonical_json

AT = datetime(2026, 3, 1, 3, 30, tzinfo=UTC)
CUT = Cut(
    id="s1",
    time=AT,
    tag="",
    seq=41,
    journal_bytes=9000,
    epoch=0,
    box="lab",
    release="1.0.0",
    plan_digest="sha256:" + "0" * 64,
    stores={"state/beads/beads.db": 3},
    counts={"beads": 2},
)


def stage(root: Path, cut: Cut = CUT, *, size: int = 20_000, seed: int = 1) -> Path:
    """A staging directory with files, folders, links, odd names and times; `size` random bytes."""
    folder = root / cut.id
    random_bytes = random.Random(seed).randbytes
    files = {
        "state/beads/beads.db": random_bytes(size),
        "state/events/000.jsonl": b'{"seq":0}\n' * 500,
        "state/pods/objects/a b/\u00fcn\u00ef.txt": b"body",
        "state/pods/empty": b"",
        "branches/ag-1/work/run.sh": b"#!/bin/sh\n",
        "branches/ag-1/work/" + "deep/" * 40 + "file": b"long path",
        "external/beads/beads.copy": b"1\tone\n",
    }
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / os.fsdecode(b"branches/ag-1/work/not-\xff-utf8")).write_bytes(b"x")
    (folder / "branches/ag-1/work/run.sh").chmod(0o755)
    (folder / "branches/ag-1/work/hollow").mkdir()
    (folder / "branches/ag-1/work/away").symlink_to("/etc/passwd")
    (folder / "branches/ag-1/work/odd").symlink_to("./work//../run.sh")
    os.utime(folder / "state/pods/empty", ns=(1_700_000_000_123_456_789,) * 2)
    (folder / "cut.json").write_bytes(canonical_json(cut.to_wire()))
    return folder


def cut_at(number: int, *, days: float = 0, partial: tuple[str, ...] = ()) -> Cut:
    """The cut `s<number>`, `days` after the first."""
    return replace(CUT, id=f"s{number}", time=AT + timedelta(days=days or number), partial=partial)


def identity() -> tuple[pyrage.x25519.Identity, str]:
    """A new identity and its recipient."""
    found = pyrage.x25519.Identity.generate()
    return found, str(found.to_public())


def filled(root: Path, recipient: str, count: int, *, size: int = 2000) -> ArchiveRepository:
    """A repository below `root` with `count` snapshots s1, s2, ... a day apart."""
    repository = ArchiveRepository(root / "backups", (recipient,))
    for number in range(1, count + 1):
        repository.write(stage(root / "staged", cut_at(number), size=size, seed=number))
    return repository


def head_at(number: int, at: datetime, *, partial: tuple[str, ...] = ()) -> Snapshot:
    """A head without members, of a cut at that time."""
    return new_head(
        replace(CUT, id=f"s{number:05}", time=at, partial=partial),
        engine="archive",
        archive=f"s{number:05}.tar.zst.age",
        size=1,
        sha256="0" * 64,
        encrypt="age",
        recipients=1,
        previous="",
        members=(),
    )
