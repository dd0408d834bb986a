"""Reads the items of one agent in order from any cursor, across kinds, and marks what was
dropped."""

import errno
import json
from collections import deque
from datetime import UTC, datetime

from agentbox.agents.streams.segment_log import (
    HEAD,
    ITEM,
    Segment,
    SegmentLog,
    StoredItem,
    parse_items,
)
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import StreamItem, StreamKind
from agentbox.core.slot_errors import CursorExpired

_CHUNK = 128 << 10


class ItemReader:
    """All readers of a log see the same items. `kinds` selects what is read.

    A modified file raises OSError. A `since` after which items were dropped raises CursorExpired;
    from 0 reading starts at the oldest stored item, and the gap is a `state` item at the cursor of
    the last item dropped. A reader that falls behind gets the same item.
    """

    def __init__(
        self, log: StreamLog, since: int = 0, kinds: tuple[StreamKind, ...] | None = None
    ) -> None:
        self._log = log
        selected = kinds or tuple(log.kinds)
        oldest = max(log.kinds[kind].floor.cursor for kind in selected)
        if 0 < since < oldest:
            raise CursorExpired(
                f"cannot read from cursor {since}: later items were dropped",
                hint="read from cursor 0",
                oldest=oldest,
            )
        self.position = since
        self._tails = [_KindReader(kind, log.kinds[kind], since) for kind in selected]

    def batch(self, size: int) -> list[StreamItem]:
        """The next items, about `size` bytes of data in total; empty if there are none now."""
        items: list[StreamItem] = []
        while size > 0:
            heads = [tail for tail in self._tails if tail.peek() is not None]
            if not heads:
                break
            item = min(heads, key=lambda tail: tail.cursor).pop()
            self.position = item.cursor
            size -= len(item.data) + 64
            items.append(item)
        return items

    @property
    def finished(self) -> bool:
        """True if all items were read and none will follow."""
        return self._log.closed and all(tail.peek() is None for tail in self._tails)

    async def wait_for_items(self) -> None:
        """Return once a batch may have items, or the log is closed."""
        await self._log.wait_for_item(self._log.last)


class _KindReader:
    """A position in one kind."""

    def __init__(self, kind: StreamKind, log: SegmentLog, since: int) -> None:
        self._kind, self._log, self._last = kind, log, since
        self._segment: Segment | None = None
        self._offset = 0
        self._ready: deque[StreamItem] = deque()

    @property
    def cursor(self) -> int:
        return self._ready[0].cursor

    def peek(self) -> StreamItem | None:
        if not self._ready:
            self._fill()
        return self._ready[0] if self._ready else None

    def pop(self) -> StreamItem:
        item = self._ready.popleft()
        self._last = item.cursor
        return item

    def _fill(self) -> None:
        while not self._ready and self._log.last > self._last:
            if self._segment is None or self._segment.dropped:
                self._skip_dropped()
            elif self._offset >= self._segment.size:
                self._segment = self._log.segments[self._log.segments.index(self._segment) + 1]
                self._offset = HEAD.size
            else:
                self._read(self._segment)

    def _skip_dropped(self) -> None:
        """Move to the first segment with unread items; a gap becomes an item."""
        floor = self._log.floor
        if floor.cursor > self._last:
            self._ready.append(self._truncation_item())
        self._segment = next(segment for segment in self._log.segments if segment.last > self._last)
        self._offset = HEAD.size

    def _truncation_item(self) -> StreamItem:
        floor = self._log.floor
        details = {
            "state": "truncated",
            "stream": self._kind,
            "dropped_items": floor.items,
            "dropped_bytes": floor.size,
        }
        return StreamItem(
            cursor=floor.cursor,
            ts=datetime.now(UTC).replace(microsecond=0),
            generation=0,
            kind="state",
            data=json.dumps(details, sort_keys=True, separators=(",", ":")).encode(),
        )

    def _read(self, segment: Segment) -> None:
        with segment.path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read(_CHUNK)
            items = list(parse_items(data))
            if not items:  # one item larger than a read
                data += stream.read()
                items = list(parse_items(data))
        if not items:
            raise OSError(errno.EIO, f"{segment.path.name} is corrupt")
        for item in items:
            self._offset += ITEM.size + len(item.data)
            if item.cursor > self._last:
                self._ready.append(self._to_stream_item(item))

    def _to_stream_item(self, item: StoredItem) -> StreamItem:
        return StreamItem(
            cursor=item.cursor,
            ts=_to_datetime(item.millis),
            generation=item.generation,
            kind=self._kind,
            data=item.data,
        )


def _to_datetime(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)
