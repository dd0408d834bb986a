"""One file into its `.part`: resumed, retried, and verified before it is accepted."""

import errno
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from agentbox.host.packages.errors import (
    DiskFullError,
    FetchError,
    FileMissingError,
    NotTrustedError,
)
from agentbox.host.packages.origin import FileOrigin
from agentbox.host.packages.transfer.cache import Cache, describe_difference, mismatch_error

_ATTEMPTS = 4
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


class TransferCancelled(Exception):
    """Another file failed, or the user interrupted; partial files are kept."""


class Transfer:
    """Fetches one entry into the cache. `advance` gets each byte once, even if it is sent again."""

    def __init__(
        self,
        origin: FileOrigin,
        cache: Cache,
        stop: threading.Event,
        advance: Callable[[int], None],
    ) -> None:
        self._origin, self._entry, self._cache = origin, origin.entry, cache
        self._stop, self._advance = stop, advance
        self._reported = 0

    def run(self) -> None:
        """Raises FetchError: no response, an error response, unexpected bytes (which are deleted).
        Raises DiskFullError, TransferCancelled.
        """
        try:
            with self._cache.partial_file(self._entry) as partial:
                self._fill(partial)
        except OSError as error:
            if error.errno not in _DISK_ERRORS:
                raise
            directory = self._cache.directory
            raise DiskFullError(
                f"cannot store {self._entry.file} in {directory}: {error.strerror}"
            ) from error
        self._report_progress(self._entry.size)

    def _fill(self, partial: Path) -> None:
        if self._cache.path(self._entry).exists():
            partial.unlink()  # another process was faster
        elif not (self._fetch_and_accept(partial) or self._restart(partial)):
            detail = describe_difference(self._entry, partial)
            partial.unlink()
            raise mismatch_error(self._entry, detail)

    def _fetch_and_accept(self, partial: Path) -> bool:
        self._download(partial)
        return self._cache.accept(self._entry, partial)

    def _restart(self, partial: Path) -> bool:
        """Starts from an empty file: an earlier run may have left wrong bytes."""
        with partial.open("r+b") as stream:
            stream.truncate(0)
        return self._fetch_and_accept(partial)

    def _download(self, partial: Path) -> None:
        if self._origin.make is not None:
            _produce(self._origin.make, partial)
            return
        for remaining in reversed(range(_ATTEMPTS)):
            try:
                self._stream(partial)
                return
            except (FileMissingError, NotTrustedError):
                raise
            except FetchError:
                if remaining == 0 or self._stop.is_set():
                    raise

    def _stream(self, partial: Path) -> None:
        client, size = self._origin.client, partial.stat().st_size
        assert client is not None
        offset = size if size < self._entry.size else 0
        with (
            client.stream(self._origin.url, offset) as (position, chunks),
            partial.open("r+b", buffering=0) as target,
        ):
            target.truncate(position)
            target.seek(position)
            for chunk in chunks:
                if self._stop.is_set():
                    raise TransferCancelled
                target.write(chunk)
                position += len(chunk)
                self._report_progress(min(position, self._entry.size))
                if position > self._entry.size:
                    return

    def _report_progress(self, position: int) -> None:
        if position > self._reported:
            self._advance(position - self._reported)
            self._reported = position


def _produce(make: Callable[[Path], None], partial: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="make-", dir=partial.parent) as directory:
        output = Path(directory) / "file"
        make(output)
        with output.open("rb") as source, partial.open("r+b") as target:
            target.truncate(0)
            shutil.copyfileobj(source, target)
