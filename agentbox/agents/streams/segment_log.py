"""Items of one kind (stdout, stderr, state or exit) of one agent, in segment files. The oldest
segments are dropped.

A segment starts with the totals before it, so that after a restart the first segment tells what was
dropped. Nothing is synced to disk: the page cache outlives the process, and agents do not survive a
crash of the machine.
"""

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEAD = struct.Struct("<8sQQQQ")  # magic; then a StreamTotals
ITEM = struct.Struct(
    "<QQII"
)  # cursor, Unix milliseconds, generation, length of the data that follows
_MAGIC = b"abxstrm1"
_SEGMENTS = 8  # number of segments that the limit is divided into
_MIN_SEGMENT = 4096
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC


class StoredItem(NamedTuple):
    """An item as stored on disk."""

    cursor: int
    millis: int
    generation: int
    data: bytes


class StreamTotals(NamedTuple):
    """Totals of a stream up to a point: cursor and time of the last item, items and bytes."""

    cursor: int = 0
    items: int = 0
    size: int = 0
    millis: int = 0


class Segment:
    """One file. `dropped` once it has been deleted."""

    def __init__(self, path: Path, before: StreamTotals) -> None:
        self.path, self.before = path, before
        self.last, self.items, self.data = before.cursor, 0, 0
        self.millis = before.millis
        self.size = HEAD.size
        self.dropped = False

    def add(self, item: StoredItem) -> None:
        self.last, self.millis = item.cursor, item.millis
        self.items += 1
        self.data += len(item.data)
        self.size += ITEM.size + len(item.data)

    @property
    def after(self) -> StreamTotals:
        return StreamTotals(
            self.last, self.before.items + self.items, self.before.size + self.data, self.millis
        )


class SegmentLog:
    """Keeps at most `limit` bytes of files and `max_items` items; 0 = unlimited. Cursors of one
    kind increase.

    `hold_cursor` is the cursor up to which a reader has the items: later ones are kept beyond the
    limit, so check `full` before appending. None: no reader; the oldest items are dropped.
    """

    def __init__(self, directory: Path, kind: str, limit: int, max_items: int = 0) -> None:
        self.directory, self.kind, self.limit, self.max_items = directory, kind, limit, max_items
        self.segments: list[Segment] = []
        self.hold_cursor: int | None = None
        self._fd: int | None = None

    @property
    def floor(self) -> StreamTotals:
        """Totals of what was dropped; the cursor is that of the last item dropped."""
        return self.segments[0].before if self.segments else StreamTotals()

    @property
    def last(self) -> int:
        """The newest cursor; 0 if there is none."""
        return self.segments[-1].last if self.segments else 0

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def items(self) -> int:
        """Number of stored items."""
        return sum(segment.items for segment in self.segments)

    @property
    def full(self) -> bool:
        """True while unread items leave no space."""
        return (
            self.hold_cursor is not None and self.last > self.hold_cursor and self.size > self.limit
        )

    def append(self, item: StoredItem) -> None:
        """Write one item and drop the oldest segments beyond the limit. Raises OSError if nothing
        was written."""
        if self._fd is None or self._needs_new_segment(
            self.segments[-1], ITEM.size + len(item.data)
        ):
            self._roll()
        assert self._fd is not None
        head = ITEM.pack(item.cursor, item.millis, item.generation, len(item.data))
        if os.writev(self._fd, [head, item.data]) < len(head) + len(item.data):  # the disk is full
            os.ftruncate(self._fd, self.segments[-1].size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.segments[-1].add(item)
        self.trim()

    def trim(self) -> None:
        """Drop the oldest segments beyond the limit, except unread ones."""
        while len(self.segments) > 1 and (
            self.size > self.limit or 0 < self.max_items < self.items
        ):
            if self.hold_cursor is not None and self.segments[0].last > self.hold_cursor:
                return
            oldest = self.segments.pop(0)
            oldest.dropped = True
            oldest.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the open file. A later append opens a new one."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def recover(self) -> None:
        """Read what an earlier process stored; an incomplete last item is cut off."""
        for path in sorted(self.directory.glob(f"{self.kind}.*")):
            data = path.read_bytes()
            if len(data) < HEAD.size or data[:8] != _MAGIC:
                path.unlink()
                continue
            segment = Segment(path, StreamTotals(*HEAD.unpack_from(data)[1:]))
            for item in parse_items(data[HEAD.size :]):
                segment.add(item)
            os.truncate(path, segment.size)
            self.segments.append(segment)

    def _needs_new_segment(self, segment: Segment, size: int) -> bool:
        if self.max_items and segment.items >= max(1, self.max_items // _SEGMENTS):
            return True
        return segment.size + size > max(_MIN_SEGMENT, self.limit // _SEGMENTS)

    def _roll(self) -> None:
        before = self.segments[-1].after if self.segments else StreamTotals()
        self.close()
        number = int(self.segments[-1].path.suffix[1:]) + 1 if self.segments else 0
        path = self.directory / f"{self.kind}.{number:012d}"
        fd = self._create_file(path)
        try:
            if os.write(fd, HEAD.pack(_MAGIC, *before)) < HEAD.size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.close(fd)
            path.unlink()
            raise
        self._fd = fd
        self.segments.append(Segment(path, before))

    def _create_file(self, path: Path) -> int:
        try:
            return os.open(path, _CREATE_FLAGS, 0o600)
        except FileNotFoundError:  # the first file of this agent
            self.directory.mkdir(parents=True, exist_ok=True)
            return os.open(path, _CREATE_FLAGS, 0o600)


def parse_items(data: bytes) -> Iterator[StoredItem]:
    """The complete items at the start of `data`."""
    offset = 0
    while offset + ITEM.size <= len(data):
        cursor, millis, generation, length = ITEM.unpack_from(data, offset)
        end = offset + ITEM.size + length
        if end > len(data):
            return
        yield StoredItem(cursor, millis, generation, data[offset + ITEM.size : end])
        offset = end
