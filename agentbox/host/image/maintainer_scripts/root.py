"""Merges the trees of several layers into one root, and runs programs of that root without chroot.

A build sandbox has no shell, and changing the root may be forbidden. So a program is started
through a loader at the top of the root, and gets relative paths only: its output cannot contain the
build path.
"""

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from agentbox.core.errors import AgentboxError


class MergedRoot:
    """A directory tree of links: each file links to its tree, links of a tree are copied."""

    def __init__(self, directory: Path, loader: Path) -> None:
        self.directory, self._loader = directory.absolute(), loader

    @classmethod
    def merged(cls, trees: Iterable[Path], loader: Path, directory: Path) -> Self:
        """Creates `folder` from the trees; of two equal paths the first is used. `loader` is that
        of their libc, at an executable path: the store keeps no such bit in a tree.
        """
        directory.mkdir(parents=True)
        for tree in trees:
            _merge_tree(tree.absolute(), directory)
        return cls(directory, loader)

    def files(self, under: str) -> list[str]:
        """Return the paths of all files and links below a directory, relative to it, sorted."""
        top = self.directory / under
        paths = (
            Path(parent) / name
            for parent, directories, names in os.walk(top)
            for name in (*names, *_directory_links(parent, directories))
        )
        return sorted(path.relative_to(top).as_posix() for path in paths)

    def text(self, path: str) -> str:
        """Raises AgentboxError for a missing file: the feature lacks a package."""
        try:
            return (self.directory / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise AgentboxError(
                f"cannot read /{path}: it is in no package", "Add its package to the feature."
            ) from None

    def run(self, program: str, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        """Runs a program of the root with exactly this environment, at the top of the root.

        Raises AgentboxError with the end of its output if it fails.
        """
        libraries = ":".join(
            f"usr/lib/{path.name}" for path in sorted(self.directory.glob("usr/lib/*-linux-gnu"))
        )
        result = subprocess.run(
            [str(self._loader), "--library-path", libraries, program, *arguments],
            cwd=self.directory,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if result.returncode:
            raise AgentboxError(
                f"cannot run /{program} {' '.join(arguments)}: {result.stdout[-2000:].strip()}"
            )


def _merge_tree(tree: Path, directory: Path) -> None:
    for parent, directories, names in os.walk(tree):
        target = directory / Path(parent).relative_to(tree)
        target.mkdir(parents=True, exist_ok=True)
        for name in (*names, *_directory_links(parent, directories)):
            source, link = Path(parent) / name, target / name
            if not link.is_symlink() and not link.exists():
                link.symlink_to(source.readlink() if source.is_symlink() else source)


def _directory_links(parent: str, directories: Iterable[str]) -> list[str]:
    """Return links to directories, which `os.walk` lists among directories and does not follow."""
    return [name for name in directories if (Path(parent) / name).is_symlink()]
