"""Beads in a schema of PostgreSQL, shared by as many boxes as are given the connection string (B17)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from agentbox.adapters.beads import checks
from agentbox.adapters.beads.postgres import closing, create, deps, leases
from agentbox.adapters.beads.postgres.rows import find, hold, raw_beads, settle
from agentbox.adapters.beads.postgres.schema import MIGRATIONS
from agentbox.adapters.beads.sqlite.leases import DEFAULT_LEASE
from agentbox.adapters.beads.sqlite.rows import bead_of, order_of
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.checks import check_range, check_text, cursor_of, json_text, key_of
from agentbox.adapters.runtime.paging import page_of
from agentbox.contracts import beads
from agentbox.contracts.beads import ALL, Bead, BeadFilter, BeadSpec, Claim
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import JsonValue
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.postgres.database import Connection, Postgres
from agentbox.core.storage.postgres.together import Together

_TURNS = 8  # of `claim_next`, each of which others may have been in the way of


class ExternalPgBeads(Adapter):
    """The clock is the server's. A bead whose lease is over is settled by the first call that meets it."""

    slot = "beads"
    impl = "external-pg"

    def __init__(self, cfg: SlotConfig, deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._db = Postgres(cfg, "agentbox_beads", MIGRATIONS)
        self._damaged = DamagedRows("the beads in PostgreSQL")
        self._lease_s = int(cfg.option("lease_seconds", DEFAULT_LEASE))
        self._taking, self._ending, self._making = Together(self._take), Together(self._end), Together(self._make)

    async def open(self, deadline: Deadline) -> None:
        await self._db.open(deadline)
        await self._db.run(leases.follow_clock)

    async def close(self) -> None:
        await self._db.close()

    async def health(self) -> Health:
        """Writes the server's time and reads it back. A clock that went back since the last time is seen here."""
        return self.health_is(*self._damaged.judged(*await self._db.pulse(leases.follow_clock)))

    async def create_epic(self, spec: BeadSpec) -> tuple[Bead, bool]:
        return await self._create(spec, None)

    async def create_child(self, parent_id: str, spec: BeadSpec) -> tuple[Bead, bool]:
        return await self._create(spec, parent_id)

    async def add_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._db.run(lambda db: deps.add(db, bead_id, blocker_id))

    async def remove_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._db.run(lambda db: deps.remove(db, bead_id, blocker_id))

    async def claim(self, bead_id: str, assignee: str, *, lease_id: str, lease_s: int | None = None) -> Claim:
        checks.check_lease(lease_id, lease_s)
        check_text(assignee, "/assignee", longest=beads.MAX_TITLE)
        seconds = lease_s or self._lease_s
        return await self._db.run(lambda db: leases.claim(db, bead_id, assignee, lease_id, seconds))

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
        wanted = leases.Wanted(assignee, lease_id, lease_s or self._lease_s, parent_id, tags)
        for _ in range(_TURNS):
            if (claim := await self._taking.call(wanted)) is not None:
                return claim
            seen = await self._db.repeatable(lambda db: leases.look(db, wanted))
            if seen.over or seen.due:
                await self._db.repeatable(partial(self._catch_up, over=seen.over, due=seen.due))
            elif seen.held:
                held = await self._db.repeatable(lambda db: leases.held_by(db, lease_id))
                if held is not None:
                    return held
            elif not seen.ready:
                return None
        return None  # others take each one that is ready

    async def heartbeat(self, bead_id: str, lease_id: str, *, lease_s: int | None = None) -> Claim:
        checks.check_lease(lease_id, lease_s)
        seconds = lease_s or self._lease_s
        return await self._db.run(lambda db: leases.heartbeat(db, bead_id, lease_id, seconds))

    async def release(self, bead_id: str, lease_id: str, *, delay_s: int = 0, note: str = "") -> Bead:
        checks.check_lease(lease_id)
        checks.check_release(delay_s, note)
        return await self._db.run(lambda db: leases.release(db, bead_id, lease_id, delay_s, note))

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
        if lease_id is not None and outcome != "cancelled":
            end = closing.End(bead_id, lease_id, outcome, note, text)
            if (ended := await self._ending.call(end)) is not None:
                return ended
        return await self._db.run(
            lambda db: closing.close(
                db, bead_id, outcome=outcome, note=note, result=text, lease_id=lease_id, forced=forced
            )
        )

    async def ready(self, *, parent_id: str | None = None, limit: int = 100, cursor: str | None = None) -> Page[Bead]:
        check_range(limit, "/limit", beads.LIMIT)
        listing = ["ready", parent_id]
        after = key_of(cursor, listing, 3)

        where, values = f"WHERE {leases.READY}", []
        if parent_id is not None:
            where += " AND b.parent_id = %s"
            values.append(parent_id)
        if after is not None:
            where += " AND (b.priority, b.rank, b.id) > (%s, %s, %s)"
            values += after
        order = f"{where} ORDER BY b.priority, b.rank, b.id LIMIT %s"
        found, more = page_of(await self._listed(order, (*values, limit + 1)), limit)
        beyond = cursor_of(listing, order_of(found[-1])) if more else None
        return Page(items=self._damaged.readable(found, bead_of), next_cursor=beyond)

    async def show(self, bead_id: str) -> Bead:
        bead, over = await self._db.repeatable(lambda db: find(db, bead_id))
        return (await self._db.run(lambda db: hold(db, bead_id))).bead if over else bead

    async def list(self, flt: BeadFilter = ALL, *, limit: int = 100, cursor: str | None = None) -> Page[Bead]:
        check_range(limit, "/limit", beads.LIMIT)
        listing = ["list", flt.to_wire()]
        after = key_of(cursor, listing, 1)
        named = {name: value for name, value in flt.to_wire().items() if value is not None and name != "tag"}
        where = "".join(f" AND b.{name} = %s" for name in named)
        values: tuple[object, ...] = tuple(named.values())
        if flt.tag is not None:
            where += " AND EXISTS (SELECT 1 FROM tags t WHERE t.tag = %s AND t.bead_id = b.id)"
            values += (flt.tag,)
        if after is not None:
            where += " AND b.id > %s"
            values += tuple(after)
        order, values = f"WHERE TRUE{where} ORDER BY b.id LIMIT %s", (*values, limit + 1)
        found, more = page_of(await self._listed(order, values, schedules=False), limit)
        items = self._damaged.readable(found, bead_of)
        return Page(items=items, next_cursor=cursor_of(listing, (found[-1][0],)) if more else None)

    async def _create(self, spec: BeadSpec, parent_id: str | None) -> tuple[Bead, bool]:
        new = create.New(self.deps.ids(), checks.check_spec(spec), parent_id)
        if new.usual and (made := await self._making.call(new)) is not None:
            return made, True
        return await self._db.run(lambda db: create.create(db, new))

    async def _make(self, new: Sequence[create.New]) -> Sequence[Bead | None]:
        return await self._db.repeatable(lambda db: create.create_usual(db, new))

    async def _end(self, ends: Sequence[closing.End]) -> Sequence[Bead | None]:
        return await self._db.repeatable(lambda db: closing.close_held(db, ends))

    async def _take(self, wanted: Sequence[leases.Wanted]) -> Sequence[Claim | None]:
        from psycopg.errors import UniqueViolation

        async def job(db: Connection) -> Sequence[Claim | None]:
            try:
                return await leases.take_next(db, wanted)
            except UniqueViolation:
                if len(wanted) > 1:
                    raise
                return [None]  # it holds one

        return await self._db.repeatable(job)

    async def _listed(
        self, where: str, values: tuple[Any, ...], *, schedules: bool = True
    ) -> Sequence[tuple[Any, ...]]:
        async def job(db: Connection) -> Sequence[tuple[Any, ...]]:
            over, due = await create.any_over(db)
            if over or (due and schedules):
                await self._catch_up(db, over, due and schedules)
            return await raw_beads(db, where, values)

        return await self._db.repeatable(job)

    async def _catch_up(self, db: Connection, over: bool, due: bool) -> None:
        """Settles what is over and makes what is due."""
        async with db.transaction():
            if over:
                await settle(db)
            if due:
                await create.make_due(db, self.deps.ids, self._damaged)
