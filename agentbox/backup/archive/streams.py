"""Bytes on their way into an archive and out of it: zstd (with its checksum), age, and files that
count and hash.
"""

import hashlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, cast

import pyrage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL: Final = 3  # of zstd: what its program takes by default
_PIPE: Final = 1 << 16


class ArchiveDamaged(Exception):
    """The bytes of an archive are not what age and zstd wrote."""


class NoMatchingIdentity(Exception):
    """No identity opens the archive."""


def compressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """One frame of zstd; equal input gives equal bytes with one version of the library."""
    options: Mapping[int, int] = {
        zstd.CompressionParameter.compression_level: LEVEL,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    compressor = zstd.ZstdCompressor(options=options)
    for chunk in chunks:
        if data := compressor.compress(chunk):
            yield data
    yield compressor.flush()


class ChunkReader:
    """Chunks as a file that is read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""
        self.error: BaseException | None = None

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, b"" at the end. An error is kept in `error`: pyrage raises its
        own.
        """
        try:
            while not self._rest:
                self._rest = next(self._chunks)
        except StopIteration:
            return b""
        except BaseException as error:
            self.error = error
            raise
        data, self._rest = (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        return data


class HashingFile:
    """A file that is written once: counts and hashes, and holds `rate` bytes a second (0: no
    bound).
    """

    def __init__(self, descriptor: int, rate: int = 0) -> None:
        self.size = 0
        self.error: OSError | None = None
        self._descriptor, self._rate = descriptor, rate
        self._digest = hashlib.sha256()
        self._started = time.monotonic()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes) -> int:
        """An OSError is kept in `error`: pyrage raises its own."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            self.error = error
            raise
        self._digest.update(data)
        self.size += len(data)
        if self._rate:
            ahead = self.size / self._rate - (time.monotonic() - self._started)
            if ahead > 0:
                time.sleep(ahead)
        return len(data)

    def flush(self) -> None:
        """Nothing is buffered."""


def write_archive(
    chunks: Iterator[bytes], target: HashingFile, recipients: Sequence[Any] | None
) -> None:
    """Compresses `chunks` into `target`, encrypted to `recipients`, or not for None. Raises what
    `chunks` raises, and OSError of `target`.
    """
    if recipients is None:
        for chunk in compressed(chunks):
            target.write(chunk)
        return
    reader = ChunkReader(compressed(chunks))
    try:
        pyrage.encrypt_io(reader, target, list(recipients))
    except (pyrage.EncryptError, OSError) as error:
        raise reader.error or target.error or error from None


@contextmanager
def decrypted(source: IO[bytes], identities: Sequence[Any]) -> Iterator[IO[bytes]]:
    """The plain bytes of a file of age, decrypted by a thread while they are read. Its error is
    raised at the end of the block: NoMatchingIdentity, ArchiveDamaged, OSError.
    """
    read_end, write_end = os.pipe()
    failure: list[BaseException] = []

    def decrypt() -> None:
        with suppress(BrokenPipeError), os.fdopen(write_end, "wb", buffering=_PIPE) as plain:
            try:
                pyrage.decrypt_io(source, plain, list(identities))
            except BaseException as error:  # noqa: BLE001 - raised by the reader
                failure.append(error)

    thread = threading.Thread(target=decrypt, name="decrypt", daemon=True)
    thread.start()
    broken: Exception | None = None
    with os.fdopen(read_end, "rb") as plain:
        try:
            yield plain
            while plain.read(_PIPE):  # what follows is authenticated too
                pass
        except Exception as error:  # noqa: BLE001 - raised below, unless it has a cause
            broken = error
    thread.join()
    if failure and not isinstance(failure[0], BrokenPipeError):
        raise _translated(failure[0]) from failure[0]
    if broken is not None:
        raise broken


def _translated(error: BaseException) -> BaseException:
    """What pyrage reported, as an error of this module."""
    if isinstance(error, pyrage.DecryptError):
        if "No matching keys" in str(error):
            return NoMatchingIdentity()
        return ArchiveDamaged(f"it is not a file of age ({error})")
    if isinstance(error, OSError) and error.errno is None:
        return ArchiveDamaged("its bytes were changed or cut off (age)")
    return error


@contextmanager
def decompressed(source: IO[bytes]) -> Iterator[IO[bytes]]:
    """The content of a frame of zstd. Raises ArchiveDamaged."""
    try:
        with zstd.open(source, "rb") as plain:
            yield cast(IO[bytes], plain)
    except (zstd.ZstdError, EOFError) as error:
        raise ArchiveDamaged(f"its bytes were changed or cut off (zstd: {error})") from error
