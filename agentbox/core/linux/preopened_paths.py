"""Paths that are opened once, ahead of the rulesets that grant them, and without a boundary.

A ruleset uses such a descriptor only if opening the path would give the same: no directory on the
way is writable, the descriptor is the one that was opened, and the path still leads to it.
Otherwise the path is opened again.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from agentbox.core.linux.path_opener import (
    SYSTEM_DIRECTORIES,
    Boundary,
    OpenedPath,
    Opener,
    identity,
)

_LOWEST_FD: Final = 16  # lower numbers are assigned at a start


class PreopenedPaths:
    """Leaves out what cannot be opened."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._opened: dict[str, OpenedPath] = {}
        with Opener() as opener:
            for path in dict.fromkeys(paths):
                with suppress(OSError):
                    opened = opener.open(path)
                    descriptor = fcntl.fcntl(opened.descriptor, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
                    self._opened[path] = opened._replace(descriptor=descriptor)
            traversed = (
                *opener.followed,
                *self._opened,
                *(entry.path for entry in self._opened.values()),
            )
        self._ancestors = frozenset(
            above for route in traversed for above in _self_and_ancestors(route)
        )

    @property
    def descriptors(self) -> list[int]:
        """In ascending order."""
        return sorted(opened.descriptor for opened in self._opened.values())

    def is_safe_within(self, boundary: Boundary) -> bool:
        """Whether that boundary follows the system's links, and allows no writes on the way to
        these paths.
        """
        return boundary.link_roots == SYSTEM_DIRECTORIES and self._ancestors.isdisjoint(
            boundary.writable
        )

    def find(self, path: str) -> OpenedPath | None:
        """The opened path, not yet checked against the boundary's closed directories; None if it
        must be opened.
        """
        if (opened := self._opened.get(path)) is None:
            return None
        with suppress(OSError):
            # A Path for each costs more than the call.
            current = identity(os.stat(path))  # noqa: PTH116
            if identity(os.fstat(opened.descriptor)) == opened.identity == current:
                return opened
        return None


def _self_and_ancestors(path: str) -> Iterator[str]:
    """The path and its parent directories."""
    while path != "/":
        yield path
        path = path.rpartition("/")[0] or "/"
    yield "/"
