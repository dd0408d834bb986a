"""The trees of several layers as one root, and programs of that root run without a root of their own.

A build sandbox has no shell, and what runs in it cannot count on changing its root. So a program is started through a
loader, from the top of the root, and is told of every folder by a path relative to that: nothing it writes can name the
place where it was built.
"""

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from agentbox.core.errors import AgentboxError


class MergedRoot:
    """A folder of folders and links: each file leads to its tree, each link of a tree is as it was."""

    def __init__(self, directory: Path, loader: Path) -> None:
        self.directory, self._loader = directory.absolute(), loader

    @classmethod
    def merged(cls, trees: Iterable[Path], loader: Path, directory: Path) -> Self:
        """Makes `folder` out of the trees; of two equal paths the first stays. `loader` is that of their libc, in a
        place where it may be executed: the store keeps no such bit in a tree."""
        directory.mkdir(parents=True)
        for tree in trees:
            _merge_tree(tree.absolute(), directory)
        return cls(directory, loader)

    def files(self, under: str) -> list[str]:
        """The paths of all files and links below a folder, relative to it, sorted."""
        top = self.directory / under
        paths = (
            Path(parent) / name
            for parent, directories, names in os.walk(top)
            for name in (*names, *_directory_links(parent, directories))
        )
        return sorted(path.relative_to(top).as_posix() for path in paths)

    def text(self, path: str) -> str:
        """Raises AgentboxError for a file that is not there: the feature lacks a package."""
        try:
            return (self.directory / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise AgentboxError(
                f"cannot read /{path}: no package has it", "Name its package in the feature."
            ) from None

    def run(self, program: str, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        """Runs a program of the root with this environment and no more, at the top of the root.

        Raises AgentboxError with the end of what it printed when it fails.
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
    """Links to folders, which `os.walk` counts among the folders and does not enter."""
    return [name for name in directories if (Path(parent) / name).is_symlink()]
