"""One file into its `.part`: resumed where it broke off, tried again, checked before it counts."""

import errno
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from agentbox.host.packages.errors import FetchError, GoneError, NoRoomError
from agentbox.host.packages.origin import Origin
from agentbox.host.packages.transfer.cache import Cache, difference, mismatch

_TRIES = 4
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


class Stopped(Exception):
    """Another file failed, or the user interrupted; what came so far is kept."""


class Transfer:
    """Fetches one entry into the cache. `advance` is told of bytes once, even when they are sent again."""

    def __init__(self, origin: Origin, cache: Cache, stop: threading.Event, advance: Callable[[int], None]) -> None:
        self._origin, self._entry, self._cache = origin, origin.entry, cache
        self._stop, self._advance = stop, advance
        self._told = 0

    def run(self) -> None:
        """Raises FetchError: no answer, a refusal, other bytes than locked (which are deleted). Raises NoRoomError, Stopped."""
        try:
            with self._cache.part(self._entry) as part:
                self._fill(part)
        except OSError as error:
            if error.errno not in _DISK:
                raise
            folder = self._cache.folder
            raise NoRoomError(f"cannot keep {self._entry.file} in {folder}: {error.strerror}") from error
        self._tell(self._entry.size)

    def _fill(self, part: Path) -> None:
        if self._cache.path(self._entry).exists():
            part.unlink()  # another process was quicker
        elif not (self._complete(part) or self._anew(part)):
            what = difference(self._entry, part)
            part.unlink()
            raise mismatch(self._entry, what)

    def _complete(self, part: Path) -> bool:
        self._bring(part)
        return self._cache.accept(self._entry, part)

    def _anew(self, part: Path) -> bool:
        """Once more from nothing: what an earlier run left may have been the wrong bytes, not what the server has."""
        with part.open("r+b") as whole:
            whole.truncate(0)
        return self._complete(part)

    def _bring(self, part: Path) -> None:
        if self._origin.make is not None:
            _make(self._origin.make, part)
            return
        for left in reversed(range(_TRIES)):
            try:
                self._stream(part)
                return
            except GoneError:
                raise
            except FetchError:
                if left == 0 or self._stop.is_set():
                    raise

    def _stream(self, part: Path) -> None:
        web, have = self._origin.web, part.stat().st_size
        assert web is not None
        offset = have if have < self._entry.size else 0
        with web.stream(self._origin.url, offset) as (place, pieces), part.open("r+b", buffering=0) as target:
            target.truncate(place)
            target.seek(place)
            for piece in pieces:
                if self._stop.is_set():
                    raise Stopped
                target.write(piece)
                place += len(piece)
                self._tell(min(place, self._entry.size))
                if place > self._entry.size:
                    return

    def _tell(self, place: int) -> None:
        if place > self._told:
            self._advance(place - self._told)
            self._told = place


def _make(make: Callable[[Path], None], part: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="make-", dir=part.parent) as folder:
        made = Path(folder) / "file"
        make(made)
        with made.open("rb") as source, part.open("r+b") as target:
            target.truncate(0)
            shutil.copyfileobj(source, target)
