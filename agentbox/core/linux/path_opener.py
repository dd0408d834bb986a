"""Opens granted paths without races. A path that is checked first and opened later may have been
replaced; so each name is opened relative to its parent (openat2), and the checks use the descriptor
itself. Links are not followed where agents can write. Links of the system (`/bin`,
`/usr/bin/python3`) are in directories that no agent can write, and are followed.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

from agentbox.core.frozen import frozen
from agentbox.core.linux.openat2 import open_beneath

SYSTEM_DIRECTORIES: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/nix/store"),
    *map(os.path.realpath, (sys.prefix, sys.base_prefix)),
)
"""Directories of programs, libraries and their configuration; the last two are those of the running
interpreter.
"""
_SYSTEM_PARENTS: Final = ("/", "/dev")  # entries directly in these belong to the system too
_MAX_LINKS: Final = 40  # MAXSYMLINKS, linux/namei.h
_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

Identity = tuple[int, int]  # device and inode


class OpenDenied(OSError):
    """The path must not be opened: it is a link, or belongs to the control plane."""


class OpenedPath(NamedTuple):
    """An O_PATH descriptor, its path without links, and its parent directory."""

    descriptor: int
    path: str
    is_directory: bool
    identity: Identity
    parent: "OpenedPath | None"


@frozen
class Boundary:
    """Limits for opening, as paths without links. `protected`: paths of the control plane, of which
    only `exempt` may be opened. `link_roots`: directories whose links are followed. `writable`:
    parts of those that are writable after all.
    """

    protected: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()
    link_roots: tuple[str, ...] = SYSTEM_DIRECTORIES
    writable: tuple[str, ...] = ()


UNBOUNDED: Final = Boundary()
"""Nothing is protected; links are followed in system directories only."""


class Opener:
    """Opens paths within a boundary. A context manager: its descriptors are closed on exit."""

    def __init__(self, boundary: Boundary = UNBOUNDED) -> None:
        """Raises OSError if a protected path cannot be opened."""
        self._boundary = boundary
        self._cache: dict[str, OpenedPath] = {}
        self._protected: dict[Identity, str] = {}
        self._protected_parents: dict[
            Identity, str
        ] = {}  # protected paths and their parent directories
        self._exempt: set[Identity] = set()
        self.followed: set[str] = set()  # directories whose links were followed
        root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._root = self._cache["/"] = OpenedPath(root, "/", True, identity(os.fstat(root)), None)
        try:
            self._resolve_boundary()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Idempotent."""
        while self._cache:
            os.close(self._cache.popitem()[1].descriptor)

    def open(self, path: str) -> OpenedPath:
        """Opens an absolute path. Raises OpenDenied for a link that is not followed and for a path
        that is, contains or is inside a protected path; OSError if it does not exist.
        """
        return self.check(path, self._walk(path))

    def check(self, path: str, opened: OpenedPath) -> OpenedPath:
        """Returns `opened`, which this path resolved to. Raises OpenDenied as `open`."""
        if contained := self._protected_parents.get(opened.identity):
            raise OpenDenied(
                errno.EACCES, f"{path!r} contains {contained}, which belongs to the control plane"
            )
        current: OpenedPath | None = opened
        while current is not None and current.identity not in self._exempt:
            if containing := self._protected.get(current.identity):
                raise OpenDenied(
                    errno.EACCES,
                    f"{path!r} is inside {containing}, which belongs to the control plane",
                )
            current = current.parent
        return opened

    def _resolve_boundary(self) -> None:
        """Resolves the directories that are protected, contain protected ones, or are exempt."""
        for path in self._boundary.protected:
            *parents, last = self._existing_prefix(path)
            self._protected_parents |= dict.fromkeys(
                (entry.identity for entry in (*parents, last)), path
            )
            if last.path == path:
                self._protected[last.identity] = path
        resolved = {path: self._existing_prefix(path)[-1] for path in self._boundary.exempt}
        self._exempt = {last.identity for path, last in resolved.items() if last.path == path}

    def _existing_prefix(self, path: str) -> list[OpenedPath]:
        """The directories along that path, as far as they exist."""
        opened = [self._root]
        for name in _components(path):
            try:
                opened.append(self._enter(opened[-1], name))
            except (FileNotFoundError, NotADirectoryError):
                break
        return opened

    def _walk(self, path: str) -> OpenedPath:
        current, remaining, links = self._root, _components(path)[::-1], 0
        while remaining:
            name = remaining.pop()
            if name == "..":
                current = current.parent or current
                continue
            try:
                current = self._enter(current, name)
            except OpenDenied:
                links += 1
                if links > _MAX_LINKS or not self._is_followed(current.path, name):
                    raise
                self.followed.add(current.path)
                target = os.readlink(name, dir_fd=current.descriptor)
                remaining += _components(target)[::-1]
                current = self._root if target.startswith("/") else current
        return current

    def _enter(self, parent: OpenedPath, name: str) -> OpenedPath:
        """Opens a name in a directory. Raises OpenDenied for a link."""
        path = f"{parent.path.rstrip('/')}/{name}"
        if cached := self._cache.get(path):
            return cached
        try:
            descriptor = open_beneath(parent.descriptor, name, os.O_PATH)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            reason = f"{path!r} is a symbolic link in a directory that agents can write"
            raise OpenDenied(errno.ELOOP, reason) from error
        stat_result = os.fstat(descriptor)
        opened = OpenedPath(
            descriptor, path, stat.S_ISDIR(stat_result.st_mode), identity(stat_result), parent
        )
        self._cache[path] = opened
        return opened

    def _is_followed(self, directory: str, name: str) -> bool:
        link = f"{directory.rstrip('/')}/{name}"
        is_trusted = directory in _SYSTEM_PARENTS or any(
            is_within(link, root) for root in self._boundary.link_roots
        )
        return is_trusted and not any(
            is_within(directory, root) for root in self._boundary.writable
        )


@contextmanager
def opened_directory(path: str, boundary: Boundary = UNBOUNDED) -> Iterator[int]:
    """Yields a descriptor to read the directory at that path. Raises OSError as `Opener.open`."""
    descriptor = open_directory(path, boundary)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_directory(path: str, boundary: Boundary = UNBOUNDED) -> int:
    """As `opened_directory`; the caller closes the descriptor."""
    with Opener(boundary) as opener:
        return os.open(".", _DIRECTORY_FLAGS, dir_fd=opener.open(path).descriptor)


def resolve_root(path: str, roots: Iterable[str]) -> str:
    """The path with the longest matching prefix of `roots` replaced by its real path. `roots`:
    directories where only the box creates links. The rest of the path stays as it is.
    """
    for root in sorted(roots, key=len, reverse=True):
        if path == root:
            return os.path.realpath(root)
        if is_within(path, root):
            remainder = path[len(root) :].lstrip("/")
            return os.path.join(os.path.realpath(root), remainder)  # noqa: PTH118
    return path


def is_within(path: str, directory: str) -> bool:
    """Both paths absolute and normalised. Called a few hundred times per agent, so no Path is
    created.
    """
    return path == directory or path.startswith(
        directory if directory.endswith("/") else f"{directory}/"
    )


def _components(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def identity(stat_result: os.stat_result) -> Identity:
    """Device and inode of a stat result."""
    return stat_result.st_dev, stat_result.st_ino
