"""All that one agent put out, and what became of it: four kinds of items under one count of cursors."""

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentbox.agents.streams.segment_log import SegmentLog, StoredItem
from agentbox.contracts.orchestrator import StreamKind

KINDS: tuple[StreamKind, ...] = ("stdout", "stderr", "state", "exit")
_OUTPUT: tuple[StreamKind, ...] = ("stdout", "stderr")
EVENTS = 1024  # kept of `state`, and of `exit`, unless `limits.events_kept` says another number
_EVENT_BYTES = 1 << 10  # for each of them, on average


class StreamLog:
    """`closed` once nothing will follow. Used by one event loop; `limit` is in bytes a stream of output, `events` in items of
    each of the two that tell of its life."""

    def __init__(self, directory: Path, limit: int, events: int = EVENTS) -> None:
        self.directory, self.limit = directory, limit
        event_limits = (events * _EVENT_BYTES, events)
        self.kinds = {
            kind: SegmentLog(directory, kind, *((limit,) if kind in _OUTPUT else event_limits))
            for kind in KINDS
        }
        self.closed = False
        self.on_writable: Callable[[], None] | None = (
            None  # called when what is full may not be any more
        )
        self._final_size: int | None = None  # bytes, once closed
        self._next = 1
        self._changed = asyncio.Event()

    @classmethod
    def recover(cls, directory: Path, limit: int, events: int = EVENTS) -> "StreamLog":
        """What an earlier process kept in `folder`; empty when there is none."""
        log = cls(directory, limit, events)
        for kind in log.kinds.values():
            kind.recover()
        log._next = max(kind.last for kind in log.kinds.values()) + 1
        return log

    @property
    def last(self) -> int:
        """The newest cursor, 0 when there is none."""
        return self._next - 1

    @property
    def size(self) -> int:
        """Bytes on disk."""
        if not self.closed or self._final_size is None:
            self._final_size = sum(kind.size for kind in self.kinds.values())
        return self._final_size

    def append(self, kind: StreamKind, generation: int, data: bytes) -> int:
        """Stores one item, wakes the readers, and returns its cursor. Raises OSError."""
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
        """Keeps all output after `cursor`, which a reader has yet to take; None: by size alone."""
        self._final_size = None
        for kind in _OUTPUT:
            self.kinds[kind].hold_cursor = cursor
            self.kinds[kind].trim()
        if self.on_writable is not None:
            self.on_writable()

    def append_json(self, kind: StreamKind, generation: int, value: Mapping[str, Any]) -> int:
        """An item of kind `state` or `exit`."""
        return self.append(
            kind, generation, json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        )

    def close(self) -> None:
        """Nothing follows: readers end once they have read all. Idempotent; `reopen` takes it back."""
        for kind in self.kinds.values():
            kind.close()
        self.closed, self._final_size = True, None
        self._wake_readers()

    def reopen(self) -> None:
        """A new life of the agent."""
        self.closed = False

    async def wait_for_item(self, cursor: int) -> None:
        """Returns once there is an item after `beyond`, or the log is closed."""
        while self.last <= cursor and not self.closed:
            await self._changed.wait()

    def remove(self) -> None:
        """Deletes the files."""
        self.close()
        if self.directory.exists():
            shutil.rmtree(self.directory)

    def _wake_readers(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
