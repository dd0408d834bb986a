"""Results waiting for the bead store, in `mesh/outbox.db`. A result leaves in order: accepted by
the store, orphaned, or dropped by an operator."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import apsw
import structlog

from agentbox.contracts.beads import Beads
from agentbox.contracts.mesh import OutboxItem
from agentbox.core import clock
from agentbox.core.canonical import canonical_json
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import AdapterError, NotFound, QuotaExceeded, SlotUnavailable
from agentbox.core.storage.damaged_rows import UNREADABLE, DamagedRows, damaged_row
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.sqlite_text import each_row

FILE = "outbox.db"
_COLUMNS = ("seq", "op", "bead", "lease", "ref", "body", "at")
MAX_ITEMS = 10_000
MAX_BYTES = 64 << 20
WARN_RATIO = 0.8  # of either limit
POLL_SECONDS = 1.0
MIGRATIONS = (
    """
    CREATE TABLE items (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, op TEXT NOT NULL, bead TEXT NOT NULL, lease TEXT NOT NULL, ref TEXT NOT NULL,
        body TEXT NOT NULL, at TEXT NOT NULL
    ) STRICT;
    """,
)
_log = structlog.get_logger()


class SpoolOwner(Protocol):
    """The runner's spool, notified when a result has left the outbox."""

    async def result_stored(self, ref: str) -> None: ...
    async def result_refused(self, ref: str, result: JsonObj) -> None: ...


EmitEvent = Callable[[str, dict[str, Any]], None]


class Outbox:
    """`emit` appends an event. `put` fails at `max_items` and at `max_bytes`."""

    def __init__(
        self,
        directory: Path,
        emit: EmitEvent,
        *,
        max_items: int = MAX_ITEMS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._db = Database(directory / FILE, MIGRATIONS, "beads", "outbox")
        self._damaged = DamagedRows(FILE)
        self._emit, self._max_items, self._max_bytes = emit, max_items, max_bytes
        self._pending: dict[int, tuple[str, int, datetime]] = {}  # seq -> ref, bytes, time added
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._warned = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Loads waiting results; unreadable rows are logged and kept. Raises BackendError."""
        await self._db.open()
        self._pending = {
            result.seq: (result.ref, result.size, result.created_at)
            for result in await self._read_results()
        }

    async def close(self) -> None:
        """Stops sending; waiting results stay."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None
        await self._db.close()

    @property
    def depth(self) -> int:
        return len(self._pending)

    @property
    def size(self) -> int:
        """Bytes of all waiting results."""
        return sum(size for _, size, _ in self._pending.values())

    @property
    def oldest_s(self) -> float:
        """Age of the oldest result in seconds; 0 when empty."""
        times = [created_at for _, _, created_at in self._pending.values()]
        return max(0.0, (clock.now() - min(times)).total_seconds()) if times else 0.0

    @property
    def refs(self) -> frozenset[str]:
        """Spool entries with a waiting result."""
        return frozenset(ref for ref, _, _ in self._pending.values())

    def status(self) -> dict[str, Any]:
        """Summary for heartbeats and status."""
        return {"depth": self.depth, "bytes": self.size, "oldest_s": round(self.oldest_s, 3)}

    async def put(
        self, op: Literal["close", "release"], bead: str, lease: str, ref: str, body: dict[str, Any]
    ) -> None:
        """Durable on return. Raises SlotUnavailable at a limit, BackendError."""
        text, now = json.dumps(body), clock.now()
        async with self._lock:
            size = len(text.encode())
            if self.depth >= self._max_items or self.size + size > self._max_bytes:
                raise SlotUnavailable(
                    "cannot store this result: the outbox is full",
                    slot="beads",
                    impl="outbox",
                    since=None,
                )
            seq = await self._db.write(
                lambda db: _insert(db, (op, bead, lease, ref, text, clock.to_wire(now)))
            )
            self._pending[seq] = (ref, size, now)
        fill_ratio = max(self.depth / self._max_items, self.size / self._max_bytes)
        if fill_ratio >= WARN_RATIO and not self._warned:
            self._warned = True
            self._emit("mesh.outbox_filling", self.status())

    async def items(self) -> tuple[OutboxItem, ...]:
        """All items, oldest first."""
        return tuple(map(_to_item, await self._read_results()))

    async def drop(self, item_id: str, by: str) -> None:
        """Drops a result on behalf of an operator; journaled. Raises NotFound."""
        item = next(
            (candidate for candidate in await self.items() if candidate.id == item_id), None
        )
        if item is None:
            raise NotFound("cannot find this outbox item", resource="outbox item", id=item_id)
        await self._remove(int(item.id))
        self._emit(
            "mesh.outbox_dropped",
            {"id": item.id, "bead": item.bead_id, "digest": item.digest, "by": by},
        )

    def start(self, beads: Beads, is_available: Callable[[], bool], owner: SpoolOwner) -> None:
        """Starts sending in the background while `is_available` returns True."""
        self._task = asyncio.get_running_loop().create_task(
            self._run(beads, is_available, owner), name="outbox"
        )

    def wake(self) -> None:
        """Retries at once, since the store may be available again."""
        self._wake.set()

    async def wait_drained(self, seconds: float) -> None:
        """Returns once the outbox is empty, or after `seconds`."""
        self.wake()
        deadline = asyncio.get_running_loop().time() + seconds
        # it ends by time as well
        while self.depth and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def _run(self, beads: Beads, is_available: Callable[[], bool], owner: SpoolOwner) -> None:
        while True:
            if self.depth and is_available():
                try:
                    await self.flush(beads, owner)
                except (AdapterError, OSError) as error:
                    _log.info("outbox waits", reason=str(error), depth=self.depth)
            self._wake.clear()
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def flush(self, beads: Beads, owner: SpoolOwner) -> None:
        """Sends in order until the first failure, and raises its error; the rest stays queued."""
        for result in await self._read_results():
            if result.seq in self._pending:
                await self._send(
                    beads, owner, result.op, result.bead, result.lease, result.ref, result.body
                )
                await self._remove(result.seq)
        self._warned = False

    async def _read_results(self) -> tuple["_StoredResult", ...]:
        """All results in order, without unreadable rows."""
        sql = f"SELECT {', '.join(_COLUMNS)} FROM items ORDER BY seq"
        rows = await self._db.read(lambda db: list(each_row(db, sql, (), _COLUMNS, key_columns=1)))
        return self._damaged.readable_rows(rows, _parse_result)

    async def _send(
        self,
        beads: Beads,
        owner: SpoolOwner,
        op: str,
        bead: str,
        lease: str,
        ref: str,
        body: dict[str, Any],
    ) -> None:
        """A permanently rejected result is orphaned: kept in the spool and never sent again, so
        that it does not block others."""
        call: Awaitable[object] = (
            beads.close_bead(bead, lease_id=lease, **body)
            if op == "close"
            else beads.release(bead, lease, **body)
        )
        try:
            await call
        except AdapterError as error:
            if error.retryable or isinstance(error, QuotaExceeded):
                raise
            outcome = body.get("outcome", op)
            data = {
                "bead": bead,
                "lease": lease,
                "outcome": outcome,
                "digest": _digest(body),
                "reason": error.code,
            }
            self._emit("bead.result.orphaned", data)
            await owner.result_refused(ref, {**body, "reason": error.code})
        else:
            await owner.result_stored(ref)

    async def _remove(self, seq: int) -> None:
        await self._db.write(lambda db: db.execute("DELETE FROM items WHERE seq = ?", (seq,)))
        self._pending.pop(seq, None)


def _insert(db: apsw.Connection, values: tuple[str, ...]) -> int:
    db.execute(
        "INSERT INTO items (op, bead, lease, ref, body, at) VALUES (?, ?, ?, ?, ?, ?)", values
    )
    return db.last_insert_rowid()


@dataclass(frozen=True, slots=True)
class _StoredResult:
    """A row; `size`: bytes of the body."""

    seq: int
    op: Literal["close", "release"]
    bead: str
    lease: str
    ref: str
    body: dict[str, Any]
    size: int
    created_at: datetime


def _parse_result(row: tuple[Any, ...]) -> _StoredResult:
    """Raises IntegrityError for a damaged row."""
    seq, op, bead, lease, ref, text, created_at = row
    try:
        body = json.loads(text)
        if not isinstance(body, dict):
            raise TypeError(type(body))
        return _StoredResult(
            seq, op, bead, lease, ref, body, len(text.encode()), clock.from_wire(created_at)
        )
    except UNREADABLE:
        raise damaged_row(f"result {seq}") from None


def _to_item(result: _StoredResult) -> OutboxItem:
    return OutboxItem(
        id=str(result.seq),
        op=result.op,
        bead_id=result.bead,
        ref=result.ref,
        outcome=str(result.body.get("outcome", "")),
        digest=_digest(result.body),
        size=result.size,
        created_at=result.created_at,
    )


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(body)).hexdigest()
