"""Opens what a grant names. Whoever checks a path and opens it later opens what somebody put there
meanwhile: here each name is opened below the folder before it (openat2), and what is checked is the
descriptor that is used.

No link is followed where an agent may have planted it. The system's own (`/bin`, `/usr/bin/python3`)
lie where no agent writes, and are followed.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from agentbox.core.linux.openat2 import open_beneath

SYSTEM_DIRECTORIES: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/nix/store"),
    *map(os.path.realpath, (sys.prefix, sys.base_prefix)),
)
"""Folders of programs, libraries and their settings; the last two are of the running interpreter."""
_SYSTEM_PARENTS: Final = ("/", "/dev")  # what lies directly in them is the system's too
_MAX_LINKS: Final = 40  # MAXSYMLINKS, linux/namei.h
_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

Identity = tuple[int, int]  # device and inode


class OpenDenied(OSError):
    """What is there may not be opened: a link, or a place of the control plane."""


class OpenedPath(NamedTuple):
    """An O_PATH descriptor, the path that leads there over no link, and the folder it lies in."""

    descriptor: int
    path: str
    is_directory: bool
    identity: Identity
    parent: "OpenedPath | None"


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """What limits the opening, as paths without links. `closed`: places of the control plane, of
    which nothing is opened but `own`. `linked`: folders whose links are followed. `written`: of
    those, where somebody writes after all."""

    protected: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()
    link_roots: tuple[str, ...] = SYSTEM_DIRECTORIES
    writable: tuple[str, ...] = ()


UNBOUNDED: Final = Boundary()
"""Nothing is closed; links are followed in the system's folders all the same, and nowhere else."""


class Opener:
    """Opens paths within a boundary. A context manager: its descriptors are closed at the end."""

    def __init__(self, boundary: Boundary = UNBOUNDED) -> None:
        """Raises OSError when a place of the control plane cannot be opened."""
        self._boundary = boundary
        self._cache: dict[str, OpenedPath] = {}
        self._protected: dict[Identity, str] = {}
        self._protected_parents: dict[
            Identity, str
        ] = {}  # closed places and the folders that hold one
        self._exempt: set[Identity] = set()
        self.followed: set[str] = set()  # folders of the links that were followed
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
        """What lies at an absolute path. Raises Refused for a link that is not followed, and for
        what is closed, holds or lies in a place that is; OSError for what is not there."""
        return self.check(path, self._walk(path))

    def check(self, path: str, opened: OpenedPath) -> OpenedPath:
        """The place that this path led to. Raises Refused as `open`."""
        if contained := self._protected_parents.get(opened.identity):
            raise OpenDenied(
                errno.EACCES, f"{path!r} shows {contained}, which is the control plane's"
            )
        current: OpenedPath | None = opened
        while current is not None and current.identity not in self._exempt:
            if containing := self._protected.get(current.identity):
                raise OpenDenied(
                    errno.EACCES, f"{path!r} lies in {containing}, the control plane's"
                )
            current = current.parent
        return opened

    def _resolve_boundary(self) -> None:
        """Learns which folders are closed, hold a closed one, or are the agent's own."""
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
        """The folders down to that path, as far as they are there."""
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
        """What has that name in a folder. Raises Refused for a link."""
        path = f"{parent.path.rstrip('/')}/{name}"
        if cached := self._cache.get(path):
            return cached
        try:
            descriptor = open_beneath(parent.descriptor, name, os.O_PATH)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            reason = f"{path!r} is a link, in a place where agents may have put it"
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
        return is_trusted and not any(is_within(directory, one) for one in self._boundary.writable)


@contextmanager
def opened_directory(path: str, boundary: Boundary = UNBOUNDED) -> Iterator[int]:
    """A descriptor that reads the folder at that path. Raises OSError as `Opener.open`."""
    descriptor = open_directory(path, boundary)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_directory(path: str, boundary: Boundary = UNBOUNDED) -> int:
    """The same descriptor, which is the caller's to close."""
    with Opener(boundary) as opener:
        return os.open(".", _DIRECTORY_FLAGS, dir_fd=opener.open(path).descriptor)


def resolve_root(path: str, roots: Iterable[str]) -> str:
    """The path, with the longest of `roots` that it lies in as the kernel names it. `roots`: where
    the box alone puts links. What lies below stays as it is written."""
    for root in sorted(roots, key=len, reverse=True):
        if path == root:
            return os.path.realpath(root)
        if is_within(path, root):
            return os.path.join(os.path.realpath(root), path[len(root) :].lstrip("/"))  # noqa: PTH118
    return path


def is_within(path: str, directory: str) -> bool:
    """Both absolute and without `.`, `..` or doubled slashes; a few hundred comparisons an agent,
    so no Path is made."""
    return path == directory or path.startswith(
        directory if directory.endswith("/") else f"{directory}/"
    )


def _components(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def identity(stat_result: os.stat_result) -> Identity:
    """Of what was looked at."""
    return stat_result.st_dev, stat_result.st_ino
