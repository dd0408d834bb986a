"""Beads in a SQLite file of the box."""

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast

import apsw

from agentbox.adapters.beads import checks
from agentbox.adapters.beads.lease_clock import POLL_SECONDS, LeaseClock
from agentbox.adapters.beads.sqlite import closing, create, deps, leases
from agentbox.adapters.beads.sqlite.rows import (
    bead_from_row,
    find,
    raw_beads,
    ready_sort_key,
    to_milliseconds,
)
from agentbox.adapters.beads.sqlite.schema import MIGRATIONS
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Deps, Page, SlotConfig
from agentbox.adapters.runtime.cut import SqliteCut
from agentbox.adapters.runtime.input_checks import (
    check_range,
    check_text,
    decode_cursor,
    encode_cursor,
    json_text,
)
from agentbox.adapters.runtime.paging import page_of
from agentbox.adapters.runtime.sqlite_adapter import SqliteAdapter
from agentbox.contracts import beads
from agentbox.contracts.beads import ALL, Bead, BeadFilter, BeadSpec, Claim
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import JsonValue
from agentbox.core.slot_errors import QuotaExceeded
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.invalid_utf8_keys import to_bindable
from agentbox.core.storage.sqlite import Database
from agentbox.manifest.slot_options import LeaseOptions

T = TypeVar("T")


class LocalSqliteBeads(SqliteAdapter):
    """`beads.db`. Expired leases are finalised before each call, so that reads and claims agree.
    Time in which this process did not run, and clock steps, do not count for leases."""

    cfg: SlotConfig[LeaseOptions]
    slot = "beads"
    impl = "local-sqlite"

    def __init__(self, cfg: SlotConfig[LeaseOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._db = Database(
            cfg.directory / "beads.db", MIGRATIONS, self.slot, self.impl, record=cfg.record
        )
        self._damaged = DamagedRows("beads.db")
        self._lease_s = cfg.options.lease_seconds
        self._lease_clock = LeaseClock(deps.clock)
        self._poller: asyncio.Task[None] | None = None

    async def open(self, deadline: Deadline) -> None:
        await self._db.open()
        await self._db.write(lambda db: leases.rebase_leases(db, self._now()))
        self._poller = asyncio.create_task(self._poll_lease_clock(), name="lease-time")

    def cut(self, *, dump: bool) -> SqliteCut:
        return SqliteCut(
            self.cfg.directory / "beads.db",
            "beads/beads.db",
            "SELECT count(*) FROM beads",
            self.slot,
            self.impl,
        )

    async def close(self) -> None:
        poller, self._poller = self._poller, None
        if poller is not None:
            poller.cancel()
            await asyncio.wait({poller})
        await self._db.close()

    async def _poll_lease_clock(self) -> None:
        while True:
            self._lease_clock.poll()
            await asyncio.sleep(POLL_SECONDS)

    async def create_epic(self, spec: BeadSpec) -> tuple[Bead, bool]:
        checked = checks.check_spec(spec)
        return await self._write(
            lambda db, now: create.create(db, self.deps.ids, now, checked, None)
        )

    async def create_child(self, parent_id: str, spec: BeadSpec) -> tuple[Bead, bool]:
        checked = checks.check_spec(spec)
        return await self._write(
            lambda db, now: create.create(db, self.deps.ids, now, checked, parent_id)
        )

    async def add_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._write(lambda db, now: deps.add(db, now, bead_id, blocker_id))

    async def remove_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._write(lambda db, now: deps.remove(db, now, bead_id, blocker_id))

    async def claim(
        self, bead_id: str, assignee: str, *, lease_id: str, lease_s: int | None = None
    ) -> Claim:
        checks.check_lease(lease_id, lease_s)
        check_text(assignee, "/assignee", max_length=beads.MAX_TITLE)
        seconds = lease_s or self._lease_s
        return await self._write(
            lambda db, now: leases.claim(db, now, bead_id, assignee, lease_id, seconds)
        )

    async def claim_next(
        self,
        assignee: str,
        *,
        lease_id: str,
        lease_s: int | None = None,
        parent_id: str | None = None,
        tags: tuple[str, ...] = (),
    ) -> Claim | None:
        checks.check_lease(lease_id, lease_s)
        check_text(assignee, "/assignee", max_length=beads.MAX_TITLE)
        checks.check_tags(tags)
        seconds = lease_s or self._lease_s

        def job(db: apsw.Connection, now: int) -> Claim | None:
            create.create_due(db, self.deps.ids, now, self._damaged)
            return leases.claim_next(
                db, now, assignee, lease_id, seconds, parent_id, tags, self._damaged
            )

        return await self._write(job)

    async def heartbeat(self, bead_id: str, lease_id: str, *, lease_s: int | None = None) -> Claim:
        checks.check_lease(lease_id, lease_s)
        seconds = lease_s or self._lease_s
        return await self._write(
            lambda db, now: leases.heartbeat(db, now, bead_id, lease_id, seconds)
        )

    async def release(
        self, bead_id: str, lease_id: str, *, delay_s: int = 0, note: str = ""
    ) -> Bead:
        checks.check_lease(lease_id)
        checks.check_release(delay_s, note)
        return await self._write(
            lambda db, now: leases.release(db, now, bead_id, lease_id, delay_s, note)
        )

    async def close_bead(
        self,
        bead_id: str,
        *,
        outcome: str = "done",
        note: str = "",
        result: JsonValue = None,
        lease_id: str | None = None,
    ) -> Bead:
        checks.check_outcome(outcome)
        checks.check_note(note)
        text = json_text(result, "/result", max_bytes=beads.MAX_DOCUMENT)
        forced = "admin" in context.current().scopes
        return await self._write(
            lambda db, now: closing.close(
                db,
                now,
                bead_id,
                outcome=outcome,
                note=note,
                result=text,
                lease_id=lease_id,
                forced=forced,
            )
        )

    async def ready(
        self, *, parent_id: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page[Bead]:
        check_range(limit, "/limit", beads.LIMIT)
        listing = ["ready", parent_id]
        after = decode_cursor(cursor, listing, 3)

        def job(db: apsw.Connection, now: int) -> Page[Bead]:
            where, values = leases.ready_condition(now, parent_id)
            if after is not None:
                where += " AND (b.priority, b.rank, b.id) > (?, ?, CAST(? AS TEXT))"
                values += map(to_bindable, after)
            order = f"{where} ORDER BY b.priority, b.rank, b.id LIMIT ?"
            page_rows, has_more = page_of(raw_beads(db, order, (*values, limit + 1)), limit)
            next_cursor = (
                encode_cursor(listing, ready_sort_key(page_rows[-1])) if has_more else None
            )
            return Page(
                items=self._damaged.readable_rows(page_rows, bead_from_row), next_cursor=next_cursor
            )

        return await self._read(job, with_schedules=True)

    async def show(self, bead_id: str) -> Bead:
        return await self._read(lambda db, _now: find(db, bead_id))

    async def list(
        self, filter: BeadFilter = ALL, *, limit: int = 100, cursor: str | None = None
    ) -> Page[Bead]:
        check_range(limit, "/limit", beads.LIMIT)
        listing = ["list", filter.to_wire()]
        after = decode_cursor(cursor, listing, 1)
        equals = {
            name: value
            for name, value in filter.to_wire().items()
            if value is not None and name not in ("tag", "id_prefix")
        }
        where = "".join(f" AND b.{name} = ?" for name in equals)
        values: tuple[object, ...] = tuple(equals.values())
        if filter.tag is not None:
            where += " AND EXISTS (SELECT 1 FROM tags t WHERE t.tag = ? AND t.bead_id = b.id)"
            values += (filter.tag,)
        if filter.id_prefix is not None:
            where += " AND b.id >= ? AND b.id < ?"
            values += checks.id_bounds(filter.id_prefix)
        if after is not None:
            where += " AND b.id > CAST(? AS TEXT)"
            values += tuple(map(to_bindable, after))
        order, values = f"WHERE TRUE{where} ORDER BY b.id LIMIT ?", (*values, limit + 1)
        page_rows, has_more = await self._read(
            lambda db, _now: page_of(raw_beads(db, order, values), limit)
        )
        items = self._damaged.readable_rows(page_rows, bead_from_row)
        return Page(
            items=items,
            next_cursor=encode_cursor(listing, (page_rows[-1][0],)) if has_more else None,
        )

    def _now(self) -> int:
        return to_milliseconds(self.deps.clock.now())

    async def _write(self, job: Callable[[apsw.Connection, int], T]) -> T:
        def expire_then_run(db: apsw.Connection) -> T:
            correction_ms, now = self._lease_clock.pop_correction(), self._now()
            try:
                if correction_ms:
                    leases.shift_leases(db, correction_ms)
                leases.expire_leases(db, now)
                return job(db, now)
            except BaseException:  # the transaction is rolled back
                self._lease_clock.restore_correction(correction_ms)
                raise

        return await self._db.write(expire_then_run)

    async def _read(
        self, job: Callable[[apsw.Connection, int], T], *, with_schedules: bool = False
    ) -> T:
        """Run in a read transaction, or in a write transaction if leases expired or schedules are
        due."""

        def read_if_current(db: apsw.Connection) -> T | object:
            now = self._now()
            if (
                self._lease_clock.poll()
                or leases.any_expired(db, now)
                or (with_schedules and create.any_due(db, now))
            ):
                return _NEEDS_WRITE
            return job(db, now)

        def create_due_then_read(db: apsw.Connection, now: int) -> T:
            if with_schedules:
                create.create_due(db, self.deps.ids, now, self._damaged)
            return job(db, now)

        result = await self._db.read(read_if_current)
        if result is not _NEEDS_WRITE:
            return cast(T, result)
        try:
            return await self._write(create_due_then_read)
        except QuotaExceeded:  # the disk is full: return the stored state
            return await self._db.read(lambda db: job(db, self._now()))


_NEEDS_WRITE = object()
