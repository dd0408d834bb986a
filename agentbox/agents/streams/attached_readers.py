"""Readers that an agent's output waits for: nothing is dropped before all of them have read it."""

import asyncio

from agentbox.agents.streams.stream_log import StreamLog

GRACE_SECONDS = 15.0  # for the reader to connect, or to reconnect
MARGIN = 512 << 10  # bytes buffered between the API and the kernel: two batches and a server buffer
_MARGIN_SHARE, _MIN_LOG_SIZE = (
    4,
    1 << 20,
)  # part of a log at most, and none of a small one


class AttachedReaders:
    """For one log. With readers, its output is kept from the position of the slowest; `grace`
    seconds after the last one has left, only the size limit applies; None: never."""

    def __init__(self, log: StreamLog, grace: float | None = GRACE_SECONDS) -> None:
        self._log, self._grace = log, grace
        self.margin = min(MARGIN, log.limit // _MARGIN_SHARE) if log.limit >= _MIN_LOG_SIZE else 0
        self._positions: dict[object, int] = {}
        self._release: asyncio.TimerHandle | None = None

    def attach(self, position: int) -> "AttachedReader":
        """Add a reader that has everything up to the cursor `position`."""
        if self._release is not None:
            self._release.cancel()
        reader = AttachedReader(self)
        self.advance(reader, position)
        return reader

    def advance(self, reader: "AttachedReader", position: int) -> None:
        """The reader has everything up to that cursor."""
        self._positions[reader] = position
        self._log.hold(min(self._positions.values()))

    def detach(self, reader: "AttachedReader") -> None:
        """Keep the position of the last reader for a while, since it may reconnect. Idempotent."""
        self._positions.pop(reader, None)
        if self._positions:
            self._log.hold(min(self._positions.values()))
        else:
            self.start_grace()

    def start_grace(self) -> None:
        """Keep the output until a reader connects or the grace expires."""
        if self._release is not None:
            self._release.cancel()
        if self._positions or self._grace is None:
            return
        self._release = asyncio.get_running_loop().call_later(self._grace, self._log.hold, None)


class AttachedReader:
    """One reader. The last `margin` bytes it has read are kept, since it may fail before it has
    forwarded them."""

    def __init__(self, readers: AttachedReaders) -> None:
        self._readers, self.margin = readers, readers.margin

    def advance(self, position: int) -> None:
        self._readers.advance(self, position)

    def detach(self) -> None:
        self._readers.detach(self)
