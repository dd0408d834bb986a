"""Bodies on their way to a Solid server.

A server may keep half of a body whose sender goes away: Community Solid Server does with its usual file store. So a body
that comes in pieces is had whole, in a file without a name, before a byte of it is sent; to a box it goes as it comes.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import IO

from agentbox.adapters.pods.local.bodies import AT_ONCE, CHUNK, check_cap
from agentbox.core.background.threads import in_thread


class Sent:
    """A body and the headers that go with it; `size` is how many bytes of it went out."""

    def __init__(self, body: bytes | AsyncIterator[bytes], size: int, headers: Mapping[str, str]) -> None:
        self.body, self.size, self.headers = body, size, headers


@asynccontextmanager
async def outgoing(body: bytes | AsyncIterator[bytes], cap: int, *, at_once: bool) -> AsyncIterator[Sent]:
    """The body to send; `at_once` sends pieces as they come. Raises ValueTooLarge before a byte over the cap is sent."""
    if isinstance(body, bytes):
        check_cap(len(body), cap)
        yield Sent(body, len(body), {})
    elif at_once:
        sent = Sent(b"", 0, {})
        sent.body = _counted(sent, body, cap)
        yield sent
    else:
        with tempfile.SpooledTemporaryFile(AT_ONCE) as file:
            size = 0
            async for piece in body:
                size += len(piece)
                check_cap(size, cap)
                await in_thread(partial(file.write, piece))
            await in_thread(partial(file.seek, 0))
            yield Sent(_read(file), size, {"Content-Length": str(size)})


async def _counted(sent: Sent, body: AsyncIterator[bytes], cap: int) -> AsyncIterator[bytes]:
    async for piece in body:
        sent.size += len(piece)
        check_cap(sent.size, cap)
        yield piece


async def _read(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await in_thread(partial(file.read, CHUNK)):
        yield piece
