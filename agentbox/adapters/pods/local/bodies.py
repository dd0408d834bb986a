"""Bodies on their way in and out: a temporary file beside the object, a reader of an open one, and the ETag of both."""

import hashlib
import os
from collections.abc import AsyncIterator
from typing import Self

from agentbox.core.background.threads import in_thread
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import ValueTooLarge

CHUNK = 256 << 10
AT_ONCE = 1 << 20  # bytes: a body up to this size is read before `read` returns


def etag_of(digest: bytes, content_type: str) -> str:
    """A strong tag that changes with the body (its SHA-256) and with the content type (P3)."""
    return f'"{hashlib.sha256(digest + content_type.encode()).hexdigest()[:40]}"'


def check_cap(size: int, cap: int) -> None:
    """Raises ValueTooLarge."""
    if size > cap:
        raise ValueTooLarge(
            f"cannot write: the object has more than {cap} bytes", hint="raise adapters.pods.max_object",
            limit="max_object", observed=size, cap=cap, config_path="adapters.pods.max_object",
        )  # fmt: skip


def span(byte_range: tuple[int, int | None] | None, size: int) -> tuple[int, int]:
    """Where to start, and how many bytes. Raises ValidationError for a range outside an object of that size."""
    if byte_range is None:
        return 0, size
    first, last = byte_range
    if not 0 <= first < size or (last is not None and last < first):
        raise refuse("/byte_range", f"does not lie in an object of {size} bytes")
    return first, min(size - 1, size if last is None else last) - first + 1


class Incoming:
    """A temporary file in the folder of the object, gone at the end of the block unless it was placed."""

    def __init__(self, folder: int, name: str, cap: int) -> None:
        self.name, self.size = name, 0
        self._cap, self._folder = cap, folder
        self._hash = hashlib.sha256()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(name, flags, 0o600, dir_fd=folder)

    def fill(self, piece: bytes) -> None:
        """Raises ValueTooLarge before a byte over the cap is written."""
        check_cap(self.size + len(piece), self._cap)
        self._hash.update(piece)
        self.size += len(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def synced(self) -> bytes:
        """The SHA-256 of what was written, which is on disk now."""
        os.fsync(self.descriptor)
        return self._hash.digest()

    def place(self, name: str) -> os.stat_result:
        """Gives the file its final name, whatever had it before; what the file is now."""
        os.rename(self.name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self.name = ""
        os.fsync(self._folder)
        return os.fstat(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        os.close(self.descriptor)
        if self.name:
            os.unlink(self.name, dir_fd=self._folder)


def read_all(descriptor: int, start: int = 0, size: int | None = None) -> bytes:
    """So many bytes from there, or all that follow."""
    pieces, left = [], size
    while left is None or left > 0:
        piece = os.pread(descriptor, CHUNK if left is None else min(CHUNK, left), start)
        if not piece:
            break
        pieces.append(piece)
        start += len(piece)
        left = None if left is None else left - len(piece)
    return b"".join(pieces)


def digest_of(descriptor: int) -> bytes:
    """SHA-256 of an open file."""
    found, at = hashlib.sha256(), 0
    while piece := os.pread(descriptor, CHUNK, at):
        found.update(piece)
        at += len(piece)
    return found.digest()


class Outgoing:
    """An open object as an iterator of pieces; owns its descriptor, and closes it at the end, or when it is dropped."""

    def __init__(self, descriptor: int, start: int, size: int) -> None:
        self._descriptor: int | None = descriptor
        self._at, self._left = start, size

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        descriptor = self._descriptor
        if descriptor is None or self._left <= 0:
            self.close()
            raise StopAsyncIteration
        piece = await in_thread(lambda: os.pread(descriptor, min(CHUNK, self._left), self._at))
        if not piece:
            self.close()
            raise StopAsyncIteration
        self._at += len(piece)
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


async def at_once(body: bytes) -> AsyncIterator[bytes]:
    """A body that is in memory already."""
    if body:
        yield body


async def cut(pieces: AsyncIterator[bytes], start: int, size: int) -> AsyncIterator[bytes]:
    """So many bytes from there, of a body that comes whole."""
    at, end = 0, start + size
    async for piece in pieces:
        if wanted := piece[max(0, start - at) : max(0, end - at)]:
            yield wanted
        at += len(piece)
        if at >= end:
            return
