"""Uploads to a Solid server.

A server may store a partial body if the sender disconnects, as Community Solid Server with its file
store does. So a streamed body is first buffered in an unnamed file; to a box it is streamed
directly.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import IO

from agentbox.adapters.pods.local.bodies import CHUNK, MAX_BUFFERED, check_cap
from agentbox.core.background.threads import run_in_thread


class UploadBody:
    """A body and its headers; `size` is the number of bytes sent."""

    def __init__(
        self, body: bytes | AsyncIterator[bytes], size: int, headers: Mapping[str, str]
    ) -> None:
        self.body, self.size, self.headers = body, size, headers


@asynccontextmanager
async def open_upload(
    body: bytes | AsyncIterator[bytes], cap: int, *, streamed: bool
) -> AsyncIterator[UploadBody]:
    """Yield the body to send; `streamed` sends chunks as they arrive. Raises ValueTooLarge before a
    byte over the cap is sent."""
    if isinstance(body, bytes):
        check_cap(len(body), cap)
        yield UploadBody(body, len(body), {})
    elif streamed:
        upload = UploadBody(b"", 0, {})
        upload.body = _count_chunks(upload, body, cap)
        yield upload
    else:
        with tempfile.SpooledTemporaryFile(MAX_BUFFERED) as file:
            size = 0
            async for chunk in body:
                size += len(chunk)
                check_cap(size, cap)
                await run_in_thread(partial(file.write, chunk))
            await run_in_thread(partial(file.seek, 0))
            yield UploadBody(_read_chunks(file), size, {"Content-Length": str(size)})


async def _count_chunks(
    upload: UploadBody, body: AsyncIterator[bytes], cap: int
) -> AsyncIterator[bytes]:
    async for chunk in body:
        upload.size += len(chunk)
        check_cap(upload.size, cap)
        yield chunk


async def _read_chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await run_in_thread(partial(file.read, CHUNK)):
        yield chunk
