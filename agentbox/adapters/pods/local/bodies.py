"""Object bodies: upload to a temporary file beside the object, download, and the ETag of both."""

import hashlib
import os
from collections.abc import AsyncIterator
from typing import Self

from agentbox.adapters.pods.local.held import HeldBodies
from agentbox.core.background.threads import run_in_thread
from agentbox.core.linux import renames
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import ValueTooLarge

CHUNK = 256 << 10
MAX_BUFFERED = 1 << 20  # bytes; smaller bodies are read before `read` returns


def etag_of(digest: bytes, content_type: str) -> str:
    """Return a strong tag of the body (its SHA-256) and the content type (P3)."""
    return f'"{hashlib.sha256(digest + content_type.encode()).hexdigest()[:40]}"'


def check_cap(size: int, cap: int) -> None:
    """Raises ValueTooLarge."""
    if size > cap:
        raise ValueTooLarge(
            f"cannot write: the object exceeds {cap} bytes",
            hint="raise adapters.pods.max_object",
            limit="max_object",
            observed=size,
            cap=cap,
            config_path="adapters.pods.max_object",
        )


def resolve_range(byte_range: tuple[int, int | None] | None, size: int) -> tuple[int, int]:
    """Return start and number of bytes. Raises ValidationError for a range outside the object."""
    if byte_range is None:
        return 0, size
    first, last = byte_range
    if not 0 <= first < size or (last is not None and last < first):
        raise invalid_value("/byte_range", f"is outside an object of {size} bytes")
    return first, min(size - 1, size if last is None else last) - first + 1


class Upload:
    """A temporary file in the directory of the object, removed at the end of the block unless
    committed."""

    def __init__(self, dir_fd: int, name: str, cap: int) -> None:
        self.name, self.size = name, 0
        self._cap, self._dir_fd = cap, dir_fd
        self._hash = hashlib.sha256()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(name, flags, 0o600, dir_fd=dir_fd)

    def write(self, chunk: bytes) -> None:
        """Raises ValueTooLarge before a byte over the cap is written."""
        check_cap(self.size + len(chunk), self._cap)
        self._hash.update(chunk)
        self.size += len(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def sync(self) -> bytes:
        """Sync the file and return its SHA-256."""
        os.fsync(self.descriptor)
        return self._hash.digest()

    def commit(self, name: str, held: HeldBodies | None = None) -> os.stat_result:
        """Rename the file to its final name, replacing an existing one; return its stat. With
        `held`, the replaced one goes there; at no time is there none. Where it cannot, it stays:
        raises OSError, and nothing has changed."""
        if held is None:
            os.rename(self.name, name, src_dir_fd=self._dir_fd, dst_dir_fd=self._dir_fd)
        else:
            renames.exchange(self._dir_fd, self.name, self._dir_fd, name)
            try:
                held.take(self._dir_fd, self.name)
            except BaseException:
                renames.exchange(self._dir_fd, self.name, self._dir_fd, name)
                raise
        self.name = ""
        os.fsync(self._dir_fd)
        return os.fstat(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        os.close(self.descriptor)
        if self.name:
            os.unlink(self.name, dir_fd=self._dir_fd)


def read_all(descriptor: int, start: int = 0, size: int | None = None) -> bytes:
    """Return `size` bytes from `start`, or all that follow."""
    chunks, remaining = [], size
    while remaining is None or remaining > 0:
        chunk = os.pread(descriptor, CHUNK if remaining is None else min(CHUNK, remaining), start)
        if not chunk:
            break
        chunks.append(chunk)
        start += len(chunk)
        remaining = None if remaining is None else remaining - len(chunk)
    return b"".join(chunks)


def digest_of(descriptor: int) -> bytes:
    """Return the SHA-256 of an open file."""
    digest, offset = hashlib.sha256(), 0
    while chunk := os.pread(descriptor, CHUNK, offset):
        digest.update(chunk)
        offset += len(chunk)
    return digest.digest()


class Download:
    """An open object as an iterator of chunks. Closes its descriptor at the end or on garbage
    collection."""

    def __init__(self, descriptor: int, start: int, size: int) -> None:
        self._descriptor: int | None = descriptor
        self._offset, self._remaining = start, size

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        descriptor = self._descriptor
        if descriptor is None or self._remaining <= 0:
            self.close()
            raise StopAsyncIteration
        chunk = await run_in_thread(
            lambda: os.pread(descriptor, min(CHUNK, self._remaining), self._offset)
        )
        if not chunk:
            self.close()
            raise StopAsyncIteration
        self._offset += len(chunk)
        self._remaining -= len(chunk)
        return chunk

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


async def buffered_body(body: bytes) -> AsyncIterator[bytes]:
    """Yield a body that is in memory."""
    if body:
        yield body


async def slice_body(chunks: AsyncIterator[bytes], start: int, size: int) -> AsyncIterator[bytes]:
    """Yield `size` bytes from `start` of a complete body."""
    position, end = 0, start + size
    async for chunk in chunks:
        if piece := chunk[max(0, start - position) : max(0, end - position)]:
            yield piece
        position += len(chunk)
        if position >= end:
            return
