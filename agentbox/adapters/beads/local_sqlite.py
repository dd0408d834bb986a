"""Beads in a SQLite file of the box."""

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast

import apsw

from agentbox.adapters.beads import checks
from agentbox.adapters.beads.lease_time import LOOK_SECONDS, LeaseTime
from agentbox.adapters.beads.sqlite import closing, create, deps, leases
from agentbox.adapters.beads.sqlite.rows import bead_of, find, ms, order_of, raw_beads
from agentbox.adapters.beads.sqlite.schema import MIGRATIONS
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.checks import check_range, check_text, cursor_of, json_text, key_of
from agentbox.adapters.runtime.paging import page_of
from agentbox.contracts import beads
from agentbox.contracts.beads import ALL, Bead, BeadFilter, BeadSpec, Claim
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import JsonValue
from agentbox.core.slot_errors import QuotaExceeded
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.stored_keys import raw

T = TypeVar("T")


class LocalSqliteBeads(Adapter):
    """`beads.db`. Before each call expired leases are settled, so that what a read shows is what a claim would meet. Time in
    which this process did not run, and steps of the clock, count for no lease."""

    slot = "beads"
    impl = "local-sqlite"

    def __init__(self, cfg: SlotConfig, deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._db = Database(cfg.directory / "beads.db", MIGRATIONS, self.slot, self.impl, record=cfg.record)
        self._damaged = DamagedRows("beads.db")
        self._lease_s = int(cfg.option("lease_seconds", leases.DEFAULT_LEASE))
        self._time = LeaseTime(deps.clock)
        self._looking: asyncio.Task[None] | None = None

    async def open(self, deadline: Deadline) -> None:
        await self._db.open()
        await self._db.write(lambda db: leases.bring_back(db, self._now()))
        self._looking = asyncio.create_task(self._look(), name="lease-time")

    async def close(self) -> None:
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.wait({looking})
        await self._db.close()

    async def _look(self) -> None:
        while True:
            self._time.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def health(self) -> Health:
        """Writes a time and reads it back."""
        state, detail = await self._db.pulse(self._now())
        return self.health_is(*self._damaged.judged(state, detail))

    async def create_epic(self, spec: BeadSpec) -> tuple[Bead, bool]:
        good = checks.check_spec(spec)
        return await self._write(lambda db, now: create.create(db, self.deps.ids, now, good, None))

    async def create_child(self, parent_id: str, spec: BeadSpec) -> tuple[Bead, bool]:
        good = checks.check_spec(spec)
        return await self._write(lambda db, now: create.create(db, self.deps.ids, now, good, parent_id))

    async def add_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._write(lambda db, now: deps.add(db, now, bead_id, blocker_id))

    async def remove_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._write(lambda db, now: deps.remove(db, now, bead_id, blocker_id))

    async def claim(self, bead_id: str, assignee: str, *, lease_id: str, lease_s: int | None = None) -> Claim:
        checks.check_lease(lease_id, lease_s)
        check_text(assignee, "/assignee", longest=beads.MAX_TITLE)
        seconds = lease_s or self._lease_s
        return await self._write(lambda db, now: leases.claim(db, now, bead_id, assignee, lease_id, seconds))

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
        check_text(assignee, "/assignee", longest=beads.MAX_TITLE)
        checks.check_tags(tags)
        seconds = lease_s or self._lease_s

        def job(db: apsw.Connection, now: int) -> Claim | None:
            create.make_due(db, self.deps.ids, now, self._damaged)
            return leases.claim_next(db, now, assignee, lease_id, seconds, parent_id, tags, self._damaged)

        return await self._write(job)

    async def heartbeat(self, bead_id: str, lease_id: str, *, lease_s: int | None = None) -> Claim:
        checks.check_lease(lease_id, lease_s)
        seconds = lease_s or self._lease_s
        return await self._write(lambda db, now: leases.heartbeat(db, now, bead_id, lease_id, seconds))

    async def release(self, bead_id: str, lease_id: str, *, delay_s: int = 0, note: str = "") -> Bead:
        checks.check_lease(lease_id)
        checks.check_release(delay_s, note)
        return await self._write(lambda db, now: leases.release(db, now, bead_id, lease_id, delay_s, note))

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
        text = json_text(result, "/result", most=beads.MAX_DOCUMENT)
        forced = "admin" in context.current().scopes
        return await self._write(
            lambda db, now: closing.close(
                db, now, bead_id, outcome=outcome, note=note, result=text, lease_id=lease_id, forced=forced
            )
        )

    async def ready(self, *, parent_id: str | None = None, limit: int = 100, cursor: str | None = None) -> Page[Bead]:
        check_range(limit, "/limit", beads.LIMIT)
        listing = ["ready", parent_id]
        after = key_of(cursor, listing, 3)

        def job(db: apsw.Connection, now: int) -> Page[Bead]:
            where, values = leases.ready_where(now, parent_id)
            if after is not None:
                where += " AND (b.priority, b.rank, b.id) > (?, ?, CAST(? AS TEXT))"
                values += map(raw, after)
            order = f"{where} ORDER BY b.priority, b.rank, b.id LIMIT ?"
            found, more = page_of(raw_beads(db, order, (*values, limit + 1)), limit)
            beyond = cursor_of(listing, order_of(found[-1])) if more else None
            return Page(items=self._damaged.readable(found, bead_of), next_cursor=beyond)

        return await self._read(job, with_schedules=True)

    async def show(self, bead_id: str) -> Bead:
        return await self._read(lambda db, _now: find(db, bead_id))

    async def list(self, flt: BeadFilter = ALL, *, limit: int = 100, cursor: str | None = None) -> Page[Bead]:
        check_range(limit, "/limit", beads.LIMIT)
        listing = ["list", flt.to_wire()]
        after = key_of(cursor, listing, 1)
        named = {name: value for name, value in flt.to_wire().items() if value is not None and name != "tag"}
        where = "".join(f" AND b.{name} = ?" for name in named)
        values: tuple[object, ...] = tuple(named.values())
        if flt.tag is not None:
            where += " AND EXISTS (SELECT 1 FROM tags t WHERE t.tag = ? AND t.bead_id = b.id)"
            values += (flt.tag,)
        if after is not None:
            where += " AND b.id > CAST(? AS TEXT)"
            values += tuple(map(raw, after))
        order, values = f"WHERE TRUE{where} ORDER BY b.id LIMIT ?", (*values, limit + 1)
        found, more = await self._read(lambda db, _now: page_of(raw_beads(db, order, values), limit))
        items = self._damaged.readable(found, bead_of)
        return Page(items=items, next_cursor=cursor_of(listing, (found[-1][0],)) if more else None)

    def _now(self) -> int:
        return ms(self.deps.clock.now())

    async def _write(self, job: Callable[[apsw.Connection, int], T]) -> T:
        def settled(db: apsw.Connection) -> T:
            owed, now = self._time.take(), self._now()
            try:
                if owed:
                    leases.move(db, owed)
                leases.settle(db, now)
                return job(db, now)
            except BaseException:  # all of it is undone
                self._time.give_back(owed)
                raise

        return await self._db.write(settled)

    async def _read(self, job: Callable[[apsw.Connection, int], T], *, with_schedules: bool = False) -> T:
        """In a reader, unless an expired lease must be settled or the child of a schedule be made first."""

        def try_it(db: apsw.Connection) -> T | object:
            now = self._now()
            if self._time.look() or leases.any_expired(db, now) or (with_schedules and create.any_due(db, now)):
                return _SETTLE
            return job(db, now)

        def settle_first(db: apsw.Connection, now: int) -> T:
            if with_schedules:
                create.make_due(db, self.deps.ids, now, self._damaged)
            return job(db, now)

        found = await self._db.read(try_it)
        if found is not _SETTLE:
            return cast(T, found)
        try:
            return await self._write(settle_first)
        except QuotaExceeded:  # the disk is full: what is stored is shown as it is
            return await self._db.read(lambda db: job(db, self._now()))


_SETTLE = object()
