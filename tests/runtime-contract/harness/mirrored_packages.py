"""The packages that a mirror on loopback serves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from agentbox.core.canonical import file_sha256
from agentbox.plan.lockfile.model import Lock, LockEntry
from harness.mirror import Deb, Mirror, Wheel

Row = TypeVar("Row", bound=LockEntry)

BIG = 300_000
SEED = [
    Deb("busybox-static", "1:1.37.0-1", files={"usr/bin/busybox": b"busybox"}),
    Deb("bash-static", "5.2-1", files={"usr/bin/bash-static": b"bash"}),
]
DEBS = [
    Deb("git", "1:2.47.3-0", depends="libc6 (>= 2.38), perl"),
    Deb("perl", "5.40.1-6", files={"usr/bin/perl": os.urandom(BIG)}),
    Deb("libc6", "2.41-12"),
    Deb("python3", "3.13.5-1", depends="libc6"),
    *SEED,
]
WHEELS = [
    Wheel(
        "uvicorn",
        "0.54.0",
        ("click>=8", 'tomli; python_version < "3.12"', 'only-new; python_version >= "3.13"'),
    ),
    Wheel("click", "8.5.1"),
    Wheel("tomli", "2.0"),
    Wheel("only-new", "1.0"),
    Wheel("installer", "1.1.0"),
]


@contextmanager
def serving(folder: Path) -> Iterator[Mirror]:
    """A mirror of all of them below `folder`."""
    with Mirror(folder / "mirror") as mirror:
        mirror.publish_debs(DEBS)
        mirror.publish_wheels(WHEELS)
        yield mirror


def relock_bytes(lock: Lock, before: Path, now: Path) -> Lock:
    """The lock of packages that the mirror in `before` served, with the bytes of the same packages
    in `now`. Two mirrors differ in their nonces only, which no tool of the seed contains."""
    paths = {file_sha256(path): path.relative_to(before) for path in _packages(before)}

    def moved(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        files = [now / paths[row.sha256] for row in rows]
        return tuple(
            replace(row, size=file.stat().st_size, sha256=file_sha256(file))
            for row, file in zip(rows, files, strict=True)
        )

    return replace(
        lock,
        seed={arch: replace(tools, files=moved(tools.files)) for arch, tools in lock.seed.items()},
        debian={arch: moved(rows) for arch, rows in lock.debian.items()},
        wheels=moved(lock.wheels),
    )


def _packages(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.suffix in (".deb", ".whl")]
