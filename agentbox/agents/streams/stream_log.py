"""Output and lifecycle of one agent: four kinds of items that share one sequence of cursors."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentbox.agents.streams.segment_log import SegmentLog, StoredItem
from agentbox.contracts.orchestrator import StreamKind
from agentbox.manifest.tables.limits import LimitsTable

KINDS: tuple[StreamKind, ...] = ("stdout", "stderr", "state", "exit")
_OUTPUT: tuple[StreamKind, ...] = ("stdout", "stderr")
EVENTS = LimitsTable.events_kept  # of `state` and of `exit`; overridden by `limits.events_kept`
_EVENT_BYTES = 1 << 10  # average size of an event


class StreamLog:
    """`closed` once nothing will follow. Used by one event loop. `limit` is in bytes per output
    stream, `events` in items of `state` and of `exit`."""

    def __init__(self, directory: Path, limit: int, events: int = EVENTS) -> None:
        self.directory, self.limit = directory, limit
        event_limits = (events * _EVENT_BYTES, events)
        self.kinds = {
            kind: SegmentLog(directory, kind, *((limit,) if kind in _OUTPUT else event_limits))
            for kind in KINDS
        }
        self.closed = False
        self.waiting = 0  # callers that will read files in its directory
        self.on_writable: Callable[[], None] | None = (
            None  # called when a full stream may have space again
        )
        self._final_size: int | None = None  # bytes, once closed
        self._directory_size: int | None = None  # likewise
        self._next = 1
        self._changed = asyncio.Event()

    @classmethod
    def recover(cls, directory: Path, limit: int, events: int = EVENTS) -> "StreamLog":
        """Load what an earlier process stored in `directory`; empty if there is nothing."""
        log = cls(directory, limit, events)
        for kind in log.kinds.values():
            kind.recover()
        log._next = max(kind.last for kind in log.kinds.values()) + 1
        return log

    @property
    def last(self) -> int:
        """The newest cursor; 0 if there is none."""
        return self._next - 1

    @property
    def size(self) -> int:
        """Bytes on disk."""
        if not self.closed or self._final_size is None:
            self._final_size = sum(kind.size for kind in self.kinds.values())
        return self._final_size

    @property
    def directory_size(self) -> int:
        """Bytes of all files in its directory, those of others too; once closed it is counted once,
        and again after `recount`."""
        if not self.closed or self._directory_size is None:
            self._directory_size = files_size(self.directory)
        return self._directory_size

    def recount(self) -> None:
        """Others have changed files in its directory."""
        self._directory_size = None

    def append(self, kind: StreamKind, generation: int, data: bytes) -> int:
        """Store one item, wake the readers, and return its cursor. Raises OSError."""
        self._final_size = None
        cursor = self._next
        self.kinds[kind].append(StoredItem(cursor, time.time_ns() // 1_000_000, generation, data))
        self._next = cursor + 1
        self._wake_readers()
        return cursor

    def is_full(self, kind: StreamKind) -> bool:
        """True while output of that kind must wait for its reader."""
        return self.kinds[kind].full

    def hold(self, cursor: int | None) -> None:
        """Keep all output after `cursor`, which a reader has not read yet; None: only the size
        limit applies."""
        self._final_size = None
        for kind in _OUTPUT:
            self.kinds[kind].hold_cursor = cursor
            self.kinds[kind].trim()
        if self.on_writable is not None:
            self.on_writable()

    def append_json(self, kind: StreamKind, generation: int, value: Mapping[str, Any]) -> int:
        """Append an item of kind `state` or `exit`."""
        return self.append(
            kind, generation, json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        )

    def close(self) -> None:
        """Nothing follows: readers finish once they have read all. Idempotent; `reopen` reverts
        it."""
        for kind in self.kinds.values():
            kind.close()
        self.closed, self._final_size, self._directory_size = True, None, None
        self._wake_readers()

    def reopen(self) -> None:
        """Reopen for a new generation."""
        self.closed = False

    async def wait_for_item(self, cursor: int) -> None:
        """Return once there is an item after `cursor`, or the log is closed."""
        while self.last <= cursor and not self.closed:
            await self._changed.wait()

    def remove(self) -> None:
        """Delete the files."""
        self.close()
        if self.directory.exists():
            shutil.rmtree(self.directory)

    def _wake_readers(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def files_size(directory: Path) -> int:
    """Bytes of the files below a directory of this program; 0 if there is none. Raises OSError."""
    return sum(
        (Path(root) / name).stat(follow_symlinks=False).st_size
        for root, _, names in os.walk(directory)
        for name in names
    )
