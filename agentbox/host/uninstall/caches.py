"""What agentbox makes in its cache directory. A variable may name a directory that was there before
and has files of others: those stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from agentbox.host.uninstall.files import remove, remove_empty, size_of

ROOTS: Final = "roots"
_MADE: Final = {
    "files": re.compile(r"[0-9a-f]{64}(\.part)?"),  # packages.transfer.cache
    ROOTS: re.compile(r"[0-9a-f]{12}"),  # packages.store.fetch: the start of a digest
    "authorities": re.compile(r"[0-9a-f]{16}\.(pem|apt\.conf)"),  # network.adopt
    "apt": re.compile(r"[a-z0-9.+-]+-[a-z0-9]+-[0-9a-f]{12}"),  # packages.apt.apt_root
}


def cache_entries(cache: Path) -> list[Path]:
    """The entries that agentbox made, by their place and name."""
    return [
        path
        for name, pattern in _MADE.items()
        if (cache / name).is_dir() and not (cache / name).is_symlink()
        for path in sorted((cache / name).iterdir())
        if pattern.fullmatch(path.name)
    ]


def foreign_entries(cache: Path) -> list[Path]:
    """What stays: everything else, at the top and beside the entries."""
    ours = set(cache_entries(cache))
    beside = [path for path in sorted(cache.iterdir()) if path.name not in _MADE]
    mixed = [cache / name for name in _MADE if (cache / name).is_dir()]
    return beside + [
        path for directory in mixed for path in sorted(directory.iterdir()) if path not in ours
    ]


def cache_size(cache: Path) -> int:
    """The bytes of the entries."""
    return sum(size_of(path) for path in cache_entries(cache))


def remove_cache(cache: Path) -> None:
    """Removes the entries, and the directories that had them if they are empty then. Raises
    AgentboxError (exit 3)."""
    entries = cache_entries(cache)
    for path in entries:
        remove(path)
    remove_empty({path.parent for path in entries})
