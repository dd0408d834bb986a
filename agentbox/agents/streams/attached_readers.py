"""Readers that an agent's output waits for: nothing that one of them has not taken is dropped."""

import asyncio

from agentbox.agents.streams.stream_log import StreamLog

GRACE_SECONDS = 15.0  # for the reader to come, and to come again after its connection broke
MARGIN = (
    512 << 10
)  # bytes that the API has taken and not yet handed to the kernel: two batches, and what a server buffers
_MARGIN_SHARE, _MIN_LOG_SIZE = (
    4,
    1 << 20,
)  # a part of its log at most, and none of a small one, so that there is room beside it


class AttachedReaders:
    """Of one log. While there is one, its output is kept from where the slowest of them is; `grace` seconds after the last
    one left, it is kept by size alone."""

    def __init__(self, log: StreamLog, grace: float = GRACE_SECONDS) -> None:
        self._log, self._grace = log, grace
        self.margin = min(MARGIN, log.limit // _MARGIN_SHARE) if log.limit >= _MIN_LOG_SIZE else 0
        self._positions: dict[object, int] = {}
        self._release: asyncio.TimerHandle | None = None

    def attach(self, position: int) -> "AttachedReader":
        """One more, which has everything up to the cursor `position`."""
        if self._release is not None:
            self._release.cancel()
        reader = AttachedReader(self)
        self.advance(reader, position)
        return reader

    def advance(self, reader: "AttachedReader", position: int) -> None:
        """It has everything up to there."""
        self._positions[reader] = position
        self._log.hold(min(self._positions.values()))

    def detach(self, reader: "AttachedReader") -> None:
        """The last place of the last one is kept for a while: it may come again. Idempotent."""
        self._positions.pop(reader, None)
        if self._positions:
            self._log.hold(min(self._positions.values()))
        else:
            self.start_grace()

    def start_grace(self) -> None:
        """What is held stays so until one comes, or the grace is over."""
        if self._release is not None:
            self._release.cancel()
        if self._positions:
            return
        self._release = asyncio.get_running_loop().call_later(self._grace, self._log.hold, None)


class AttachedReader:
    """One of them. `margin`: so many bytes of what it takes are kept, for it may break before it has passed them on."""

    def __init__(self, readers: AttachedReaders) -> None:
        self._readers, self.margin = readers, readers.margin

    def advance(self, position: int) -> None:
        self._readers.advance(self, position)

    def detach(self) -> None:
        self._readers.detach(self)
