"""Paths of the system that the launcher opens once, ahead of every start, as a grant is opened: without a boundary.

A start takes such a descriptor only where its own opening would give the same: nobody may write on the way, the descriptor is
the one that was opened, and the path still leads to it. Else the path is opened anew.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Final

from agentbox.core.linux.opening import SYSTEM, Boundary, Opener, Place, identity
from agentbox.sandbox.always import ALWAYS

_LOWEST: Final = 16  # numbers below are given away at a start


class Preopened:
    """What cannot be opened is left out."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._places: dict[str, Place] = {}
        with Opener() as opener:
            for path in dict.fromkeys(paths):
                with suppress(OSError):
                    place = opener.open(path)
                    moved = fcntl.fcntl(place.descriptor, fcntl.F_DUPFD_CLOEXEC, _LOWEST)
                    self._places[path] = place._replace(descriptor=moved)
            ways = (*opener.followed, *self._places, *(place.path for place in self._places.values()))
        self._ways = frozenset(above for way in ways for above in _upward(way))

    @property
    def descriptors(self) -> list[int]:
        """In ascending order."""
        return sorted(place.descriptor for place in self._places.values())

    def fits(self, boundary: Boundary) -> bool:
        """Whether that boundary follows the system's links, and lets nobody write on the way to any of these places."""
        return boundary.linked == SYSTEM and self._ways.isdisjoint(boundary.written)

    def place(self, path: str) -> Place | None:
        """What lies there, not yet checked against the boundary's closed places; None where it has to be opened."""
        if (place := self._places.get(path)) is None:
            return None
        with suppress(OSError):
            if identity(os.fstat(place.descriptor)) == place.identity == identity(os.stat(path)):  # noqa: PTH116 - a Path for each costs more than the call
                return place
        return None


@cache
def of_system() -> Preopened:
    """What every agent is granted, and folders of programs."""
    return Preopened((*(grant.path for grant in ALWAYS), *SYSTEM))


def _upward(path: str) -> Iterator[str]:
    """Itself and all that it lies in."""
    while path != "/":
        yield path
        path = path.rpartition("/")[0] or "/"
    yield "/"
