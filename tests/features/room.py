"""Disk space: what a trial needs, and what is free."""

from __future__ import annotations

import shutil
from pathlib import Path

from agentbox.host.packages.required_lock_files import required_files
from agentbox.manifest.features.loader import UNGATED
from agentbox.plan.lockfile.model import Lock

STORE = Path("/nix/store")
# A trial's files exist as downloads and in the store (2), unpacked where they are built, as a tree and in the engine
# (up to 3 each, for the size of archives), and compressed as a layer, in the image's archive and on their way into the
# engine (1 each). bench/results/features.json has beside it what the disk lost.
FACTOR = 14
# The same for core, however much of it exists already.
BASE = 2_000_000_000


def locked_bytes(lock: Lock, system: str) -> int:
    """Bytes of the files that an image for `system` has beside those of the core image."""
    rows = (item.entry for item in required_files(lock, system, system))
    return sum(
        row.size
        for row in rows
        if (by := getattr(row, "features", ())) and not set(UNGATED) & set(by)
    )


def free_bytes() -> int:
    """Free space where images are built."""
    return shutil.disk_usage(STORE if STORE.exists() else "/").free


def needed_bytes(locked: int) -> int:
    """Free space that suffices for an image with so many bytes of locked files to be built and
    started: an upper bound."""
    return BASE + FACTOR * locked


def too_little(locked: int, free: int) -> str:
    """Why no image with so many bytes of locked files can be built here, or nothing when one can."""
    wanted = needed_bytes(locked)
    return (
        f"{wanted / 1e9:.1f} GB of free disk are needed, {free / 1e9:.1f} GB are free"
        if free < wanted
        else ""
    )
