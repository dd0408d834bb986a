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


class Root:
    """A folder of folders and links: each file leads to its tree, each link of a tree is as it was."""

    def __init__(self, folder: Path, loader: Path) -> None:
        self.folder, self._loader = folder.absolute(), loader

    @classmethod
    def merged(cls, trees: Iterable[Path], loader: Path, folder: Path) -> Self:
        """Makes `folder` out of the trees; of two equal paths the first stays. `loader` is that of their libc, in a
        place where it may be executed: the store keeps no such bit in a tree."""
        folder.mkdir(parents=True)
        for tree in trees:
            _lay(tree.absolute(), folder)
        return cls(folder, loader)

    def files(self, under: str) -> list[str]:
        """The paths of all files and links below a folder, relative to it, sorted."""
        top = self.folder / under
        found = (Path(at) / name for at, folders, names in os.walk(top) for name in (*names, *_links(at, folders)))
        return sorted(path.relative_to(top).as_posix() for path in found)

    def text(self, path: str) -> str:
        """Raises AgentboxError for a file that is not there: the feature lacks a package."""
        try:
            return (self.folder / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise AgentboxError(f"cannot read /{path}: no package has it", "Name its package in the feature.") from None

    def run(self, program: str, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        """Runs a program of the root with this environment and no more, at the top of the root.

        Raises AgentboxError with the end of what it printed when it fails.
        """
        libraries = ":".join(f"usr/lib/{path.name}" for path in sorted(self.folder.glob("usr/lib/*-linux-gnu")))
        done = subprocess.run(
            [str(self._loader), "--library-path", libraries, program, *arguments],
            cwd=self.folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise AgentboxError(f"cannot run /{program} {' '.join(arguments)}: {done.stdout[-2000:].strip()}")


def _lay(tree: Path, folder: Path) -> None:
    for at, folders, names in os.walk(tree):
        here = folder / Path(at).relative_to(tree)
        here.mkdir(parents=True, exist_ok=True)
        for name in (*names, *_links(at, folders)):
            source, place = Path(at) / name, here / name
            if not place.is_symlink() and not place.exists():
                place.symlink_to(source.readlink() if source.is_symlink() else source)


def _links(at: str, folders: Iterable[str]) -> list[str]:
    """Links to folders, which `os.walk` counts among the folders and does not enter."""
    return [name for name in folders if (Path(at) / name).is_symlink()]
