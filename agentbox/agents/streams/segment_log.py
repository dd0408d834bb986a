"""One kind of items of one agent (stdout, stderr, state or exit), in segment files of which the oldest is dropped.

A segment starts with what came before it, so that after a restart the first one kept says what was dropped. Nothing is
synced to disk: the page cache outlives the process, and a machine that stops takes the agents along.
"""

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEAD = struct.Struct("<8sQQQQ")  # magic; then a Before
ITEM = struct.Struct(
    "<QQII"
)  # cursor, Unix milliseconds, generation, length of the data that follows
_MAGIC = b"abxstrm1"
_SEGMENTS = 8  # segments that the kept bytes are divided into
_MIN_SEGMENT = 4096
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC


class StoredItem(NamedTuple):
    """An item as it is on disk."""

    cursor: int
    millis: int
    generation: int
    data: bytes


class StreamTotals(NamedTuple):
    """What a stream held before a point: cursor and time of the last item, and how much."""

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
    """Keeps at most `limit` bytes of files, and at most `most` items; 0 = any number. Items of one kind have growing cursors.

    `held` is the cursor up to which a reader has them: what follows it is kept beyond the limit, so whoever appends asks
    whether it is `full` first. None: nobody reads, and the oldest is dropped.
    """

    def __init__(self, directory: Path, kind: str, limit: int, max_items: int = 0) -> None:
        self.directory, self.kind, self.limit, self.max_items = directory, kind, limit, max_items
        self.segments: list[Segment] = []
        self.hold_cursor: int | None = None
        self._fd: int | None = None

    @property
    def floor(self) -> StreamTotals:
        """What was dropped; the cursor is that of the last item dropped."""
        return self.segments[0].before if self.segments else StreamTotals()

    @property
    def last(self) -> int:
        """The newest cursor, 0 when there is none."""
        return self.segments[-1].last if self.segments else 0

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def items(self) -> int:
        """How many are kept."""
        return sum(segment.items for segment in self.segments)

    @property
    def full(self) -> bool:
        """True while what a reader has not taken leaves no room."""
        return (
            self.hold_cursor is not None and self.last > self.hold_cursor and self.size > self.limit
        )

    def append(self, item: StoredItem) -> None:
        """Writes one item, and drops the oldest segments beyond the limit. Raises OSError; then nothing was written."""
        if self._fd is None or self._needs_new_segment(
            self.segments[-1], ITEM.size + len(item.data)
        ):
            self._roll()
        assert self._fd is not None
        head = ITEM.pack(item.cursor, item.millis, item.generation, len(item.data))
        if os.writev(self._fd, [head, item.data]) < len(head) + len(
            item.data
        ):  # how a disk says that it is full
            os.ftruncate(self._fd, self.segments[-1].size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.segments[-1].add(item)
        self.trim()

    def trim(self) -> None:
        """Drops the oldest segments beyond the limit, but nothing that is held."""
        while len(self.segments) > 1 and (
            self.size > self.limit or 0 < self.max_items < self.items
        ):
            if self.hold_cursor is not None and self.segments[0].last > self.hold_cursor:
                return
            oldest = self.segments.pop(0)
            oldest.dropped = True
            oldest.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Lets go of the open file. A later append opens a new one."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def recover(self) -> None:
        """Reads what an earlier process kept; a torn last item is cut off."""
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
        except FileNotFoundError:  # the first of this agent
            self.directory.mkdir(parents=True, exist_ok=True)
            return os.open(path, _CREATE_FLAGS, 0o600)


def parse_items(data: bytes) -> Iterator[StoredItem]:
    """The whole items at the start of `data`."""
    offset = 0
    while offset + ITEM.size <= len(data):
        cursor, millis, generation, length = ITEM.unpack_from(data, offset)
        end = offset + ITEM.size + length
        if end > len(data):
            return
        yield StoredItem(cursor, millis, generation, data[offset + ITEM.size : end])
        offset = end
