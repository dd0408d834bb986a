"""Results that the store of beads could not be told: `mesh/outbox.db`. They leave in order, by being taken, by being found
orphaned, or by an operator's word."""

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
from agentbox.core import clock
from agentbox.core.canonical import canonical_json
from agentbox.core.records.wire import JsonObj, Record, record
from agentbox.core.slot_errors import AdapterError, NotFound, QuotaExceeded, SlotUnavailable
from agentbox.core.storage.damaged_rows import UNREADABLE, DamagedRows, damaged_row
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.sqlite_text import each_row

FILE = "outbox.db"
_COLUMNS = ("seq", "op", "bead", "lease", "ref", "body", "at")
MAX_ITEMS = 10_000
MAX_BYTES = 64 << 20
WARN_RATIO = 0.8  # of either bound
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


@record
class OutboxItem(Record):
    """One result that waits. `digest` is SHA-256 of what is sent, in canonical JSON; `ref` names the entry of the spool."""

    id: str
    op: Literal["close", "release"]
    bead_id: str
    ref: str
    outcome: str
    digest: str
    size: int
    created_at: datetime


@record
class OutboxItems(Record):
    """All that waits, the oldest first."""

    items: tuple[OutboxItem, ...]


class SpoolOwner(Protocol):
    """The spool of the runner: what becomes of an entry whose result left."""

    async def result_stored(self, ref: str) -> None: ...
    async def result_refused(self, ref: str, result: JsonObj) -> None: ...


EmitEvent = Callable[[str, dict[str, Any]], None]


class Outbox:
    """`tell` appends an event. `most` and `most_bytes` are its bounds; at either `put` refuses."""

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
        self._pending: dict[int, tuple[str, int, datetime]] = {}  # seq -> ref, bytes, since
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._warned = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Reads what waits; rows that cannot be read are named in the log, and stay. Raises BackendError."""
        await self._db.open()
        self._pending = {
            result.seq: (result.ref, result.size, result.created_at)
            for result in await self._read_results()
        }

    async def close(self) -> None:
        """Ends the sending; what waits stays."""
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
        """Bytes of what waits."""
        return sum(size for _, size, _ in self._pending.values())

    @property
    def oldest_s(self) -> float:
        """Seconds since the oldest came; 0 when nothing waits."""
        times = [created_at for _, _, created_at in self._pending.values()]
        return max(0.0, (clock.now() - min(times)).total_seconds()) if times else 0.0

    @property
    def refs(self) -> frozenset[str]:
        """Entries of the spool whose result is here."""
        return frozenset(ref for ref, _, _ in self._pending.values())

    def status(self) -> dict[str, Any]:
        """What beats and status say of it."""
        return {"depth": self.depth, "bytes": self.size, "oldest_s": round(self.oldest_s, 3)}

    async def put(
        self, op: Literal["close", "release"], bead: str, lease: str, ref: str, body: dict[str, Any]
    ) -> None:
        """Durable when it returns. Raises SlotUnavailable at a bound, BackendError."""
        text, now = json.dumps(body), clock.now()
        async with self._lock:
            size = len(text.encode())
            if self.depth >= self._max_items or self.size + size > self._max_bytes:
                raise SlotUnavailable(
                    "cannot keep this result: the outbox is full",
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
        """The oldest first."""
        return tuple(map(_to_item, await self._read_results()))

    async def drop(self, item_id: str, by: str) -> None:
        """An operator gives a result up; journaled. Raises NotFound."""
        item = next(
            (candidate for candidate in await self.items() if candidate.id == item_id), None
        )
        if item is None:
            raise NotFound(
                "cannot find this item of the outbox", resource="outbox item", id=item_id
            )
        await self._remove(int(item.id))
        self._emit(
            "mesh.outbox_dropped",
            {"id": item.id, "bead": item.bead_id, "digest": item.digest, "by": by},
        )

    def start(self, beads: Beads, is_available: Callable[[], bool], owner: SpoolOwner) -> None:
        """Sends what waits whenever `up` says that the store is there."""
        self._task = asyncio.get_running_loop().create_task(
            self._run(beads, is_available, owner), name="outbox"
        )

    def wake(self) -> None:
        """The store may be back."""
        self._wake.set()

    async def wait_drained(self, seconds: float) -> None:
        """Returns once nothing waits; after that time at the latest."""
        self.wake()
        deadline = asyncio.get_running_loop().time() + seconds
        while self.depth and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - it ends by time as well
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
        """Sends in order until one cannot be sent now. Raises that one's error; it and the rest wait on."""
        for result in await self._read_results():
            if result.seq in self._pending:
                await self._send(
                    beads, owner, result.op, result.bead, result.lease, result.ref, result.body
                )
                await self._remove(result.seq)
        self._warned = False

    async def _read_results(self) -> tuple["_Result", ...]:
        """In order, without what cannot be read."""
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
        """A result that the store refuses for good is orphaned: kept in the spool, never sent again, never another's loss."""
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
class _Result:
    """A row; `size` is of its body in bytes."""

    seq: int
    op: Literal["close", "release"]
    bead: str
    lease: str
    ref: str
    body: dict[str, Any]
    size: int
    created_at: datetime


def _parse_result(row: tuple[Any, ...]) -> _Result:
    """Raises IntegrityError for a row that holds none."""
    seq, op, bead, lease, ref, text, created_at = row
    try:
        body = json.loads(text)
        if not isinstance(body, dict):
            raise TypeError(type(body))
        return _Result(
            seq, op, bead, lease, ref, body, len(text.encode()), clock.from_wire(created_at)
        )
    except UNREADABLE:
        raise damaged_row(f"result {seq}") from None


def _to_item(result: _Result) -> OutboxItem:
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


RECORDS = {kind.__name__: kind for kind in (OutboxItems,)}
