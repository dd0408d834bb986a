"""The store paths of agentbox in a Nix store that stays: what its GC roots reach."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.packages.host_command import run
from agentbox.host.packages.store.nix_store import nix_environment

STORE: Final = Path("/nix/store")
_ROOTS: Final = Path("/nix/var/nix/gcroots/auto")
_PROFILES: Final = Path("/nix/var/nix/profiles")


def roots_below(directories: Iterable[Path]) -> list[Path]:
    """The links below these directories that point into the store."""
    return sorted(
        Path(parent, name)
        for directory in directories
        for parent, names, files in os.walk(directory)
        for name in (*names, *files)
        if Path(parent, name).is_symlink() and Path(parent, name).readlink().is_relative_to(STORE)
    )


def reached_paths(roots: Iterable[Path]) -> list[str]:
    """The store paths that the roots reach. Raises AgentboxError (exit 6)."""
    targets = sorted({str(root.readlink()) for root in roots if root.exists()})
    return _nix_store("-qR", *targets) if targets else []


def delete_dead(paths: Iterable[str]) -> None:
    """Deletes those of the paths that nothing reaches any more. Raises AgentboxError (exit 6)."""
    wanted = set(paths)
    if not wanted:
        return
    dead = sorted(wanted.intersection(_nix_store("--gc", "--print-dead")))
    if dead:
        _nix_store("--delete", *dead)


def foreign_roots(directories: Iterable[Path]) -> list[str]:
    """GC roots and profiles that are not below these directories."""
    ours = [directory.resolve() for directory in directories]
    links = [link.readlink() for link in _ROOTS.iterdir()] if _ROOTS.is_dir() else []
    foreign = [
        link
        for link in links
        if os.path.lexists(link) and not any(link.is_relative_to(each) for each in ours)
    ]
    profiles = _PROFILES.rglob("*") if _PROFILES.is_dir() else []
    return sorted(map(str, [*foreign, *(path for path in profiles if path.is_symlink())]))


def _nix_store(*arguments: str) -> list[str]:
    result = run(["nix-store", *arguments], extra=nix_environment())
    if result.code != 0:
        raise AgentboxError(f"cannot use the Nix store: {result.reason}", exit_code=ExitCode.ENGINE)
    return result.out.split()
