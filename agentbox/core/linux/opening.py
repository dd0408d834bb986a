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

SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/nix/store"),
    *map(os.path.realpath, (sys.prefix, sys.base_prefix)),
)
"""Folders of programs, libraries and their settings; the last two are of the running interpreter."""
_ENTRIES: Final = ("/", "/dev")  # what lies directly in them is the system's too
_MOST_LINKS: Final = 40  # MAXSYMLINKS, linux/namei.h
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

Identity = tuple[int, int]  # device and inode


class Refused(OSError):
    """What is there may not be opened: a link, or a place of the control plane."""


class Place(NamedTuple):
    """An O_PATH descriptor, the path that leads there over no link, and the folder it lies in."""

    descriptor: int
    path: str
    is_folder: bool
    identity: Identity
    above: "Place | None"


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """What limits the opening, as paths without links. `closed`: places of the control plane, of
    which nothing is opened but `own`. `linked`: folders whose links are followed. `written`: of
    those, where somebody writes after all."""

    closed: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    linked: tuple[str, ...] = SYSTEM
    written: tuple[str, ...] = ()


UNBOUNDED: Final = Boundary()
"""Nothing is closed; links are followed in the system's folders all the same, and nowhere else."""


class Opener:
    """Opens paths within a boundary. A context manager: its descriptors are closed at the end."""

    def __init__(self, boundary: Boundary = UNBOUNDED) -> None:
        """Raises OSError when a place of the control plane cannot be opened."""
        self._boundary = boundary
        self._known: dict[str, Place] = {}
        self._closed: dict[Identity, str] = {}
        self._above: dict[Identity, str] = {}  # closed places and the folders that hold one
        self._own: set[Identity] = set()
        self.followed: set[str] = set()  # folders of the links that were followed
        root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._root = self._known["/"] = Place(root, "/", True, identity(os.fstat(root)), None)
        try:
            self._survey()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Idempotent."""
        while self._known:
            os.close(self._known.popitem()[1].descriptor)

    def open(self, path: str) -> Place:
        """What lies at an absolute path. Raises Refused for a link that is not followed, and for
        what is closed, holds or lies in a place that is; OSError for what is not there."""
        return self.checked(path, self._walked(path))

    def checked(self, path: str, found: Place) -> Place:
        """The place that this path led to. Raises Refused as `open`."""
        if shown := self._above.get(found.identity):
            raise Refused(errno.EACCES, f"{path!r} shows {shown}, which is the control plane's")
        here: Place | None = found
        while here is not None and here.identity not in self._own:
            if around := self._closed.get(here.identity):
                raise Refused(errno.EACCES, f"{path!r} lies in {around}, the control plane's")
            here = here.above
        return found

    def _survey(self) -> None:
        """Learns which folders are closed, hold a closed one, or are the agent's own."""
        for path in self._boundary.closed:
            *above, last = self._existing(path)
            self._above |= dict.fromkeys((one.identity for one in (*above, last)), path)
            if last.path == path:
                self._closed[last.identity] = path
        ends = {path: self._existing(path)[-1] for path in self._boundary.own}
        self._own = {last.identity for path, last in ends.items() if last.path == path}

    def _existing(self, path: str) -> list[Place]:
        """The folders down to that path, as far as they are there."""
        found = [self._root]
        for name in _names(path):
            try:
                found.append(self._entered(found[-1], name))
            except (FileNotFoundError, NotADirectoryError):
                break
        return found

    def _walked(self, path: str) -> Place:
        here, ahead, links = self._root, _names(path)[::-1], 0
        while ahead:
            name = ahead.pop()
            if name == "..":
                here = here.above or here
                continue
            try:
                here = self._entered(here, name)
            except Refused:
                links += 1
                if links > _MOST_LINKS or not self._is_followed(here.path, name):
                    raise
                self.followed.add(here.path)
                target = os.readlink(name, dir_fd=here.descriptor)
                ahead += _names(target)[::-1]
                here = self._root if target.startswith("/") else here
        return here

    def _entered(self, above: Place, name: str) -> Place:
        """What has that name in a folder. Raises Refused for a link."""
        path = f"{above.path.rstrip('/')}/{name}"
        if known := self._known.get(path):
            return known
        try:
            descriptor = open_beneath(above.descriptor, name, os.O_PATH)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            why = f"{path!r} is a link, in a place where agents may have put it"
            raise Refused(errno.ELOOP, why) from error
        told = os.fstat(descriptor)
        made = Place(descriptor, path, stat.S_ISDIR(told.st_mode), identity(told), above)
        self._known[path] = made
        return made

    def _is_followed(self, folder: str, name: str) -> bool:
        link = f"{folder.rstrip('/')}/{name}"
        systems = folder in _ENTRIES or any(within(link, one) for one in self._boundary.linked)
        return systems and not any(within(folder, one) for one in self._boundary.written)


@contextmanager
def folder(path: str, boundary: Boundary = UNBOUNDED) -> Iterator[int]:
    """A descriptor that reads the folder at that path. Raises OSError as `Opener.open`."""
    descriptor = open_folder(path, boundary)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_folder(path: str, boundary: Boundary = UNBOUNDED) -> int:
    """The same descriptor, which is the caller's to close."""
    with Opener(boundary) as opener:
        return os.open(".", _FOLDER, dir_fd=opener.open(path).descriptor)


def settled(path: str, roots: Iterable[str]) -> str:
    """The path, with the longest of `roots` that it lies in as the kernel names it. `roots`: where
    the box alone puts links. What lies below stays as it is written."""
    for root in sorted(roots, key=len, reverse=True):
        if path == root:
            return os.path.realpath(root)
        if within(path, root):
            return os.path.join(os.path.realpath(root), path[len(root) :].lstrip("/"))  # noqa: PTH118
    return path


def within(path: str, place: str) -> bool:
    """Both absolute and without `.`, `..` or doubled slashes; a few hundred comparisons an agent,
    so no Path is made."""
    return path == place or path.startswith(place if place.endswith("/") else f"{place}/")


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def identity(told: os.stat_result) -> Identity:
    """Of what was looked at."""
    return told.st_dev, told.st_ino
