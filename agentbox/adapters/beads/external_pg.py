"""Beads in a PostgreSQL schema, shared by all boxes with the connection string (B17)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from agentbox.adapters.beads import checks
from agentbox.adapters.beads.postgres import closing, create, deps, leases
from agentbox.adapters.beads.postgres.rows import expire_leases, find, lock_bead, raw_beads
from agentbox.adapters.beads.postgres.schema import MIGRATIONS
from agentbox.adapters.beads.sqlite.rows import bead_from_row, ready_sort_key
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.input_checks import (
    check_range,
    check_text,
    decode_cursor,
    encode_cursor,
    json_text,
)
from agentbox.adapters.runtime.paging import page_of
from agentbox.adapters.runtime.postgres_cut import PostgresCut
from agentbox.contracts import beads
from agentbox.contracts.beads import ALL, Bead, BeadFilter, BeadSpec, Claim
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import JsonValue
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.postgres.call_batcher import CallBatcher
from agentbox.core.storage.postgres.database import Connection, Postgres
from agentbox.manifest.slot_options import PostgresBeadsOptions

_MAX_ATTEMPTS = 8  # of `claim_next`, against concurrent claims


class ExternalPgBeads(Adapter):
    """Uses the server's clock. The first call that meets an expired lease finalises it."""

    cfg: SlotConfig[PostgresBeadsOptions]
    slot = "beads"
    impl = "external-pg"

    def __init__(self, cfg: SlotConfig[PostgresBeadsOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._db = Postgres(cfg, MIGRATIONS)
        self._damaged = DamagedRows("the beads in PostgreSQL")
        self._lease_s = cfg.options.lease_seconds
        self._claim_batcher, self._close_batcher, self._create_batcher = (
            CallBatcher(self._claim_batch),
            CallBatcher(self._close_batch),
            CallBatcher(self._create_batch),
        )

    async def open(self, deadline: Deadline) -> None:
        await self._db.open(deadline)
        await self._db.run(leases.sync_clock)

    def cut(self, *, dump: bool) -> PostgresCut | None:
        return PostgresCut(self.cfg, "beads") if dump else None

    async def close(self) -> None:
        await self._db.close()

    async def health(self) -> Health:
        """Write the server's time and read it back. Detects a clock that went back."""
        return self.health_is(*self._damaged.adjust_state(*await self._db.pulse(leases.sync_clock)))

    async def create_epic(self, spec: BeadSpec) -> tuple[Bead, bool]:
        return await self._create(spec, None)

    async def create_child(self, parent_id: str, spec: BeadSpec) -> tuple[Bead, bool]:
        return await self._create(spec, parent_id)

    async def add_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._db.run(lambda db: deps.add(db, bead_id, blocker_id))

    async def remove_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._db.run(lambda db: deps.remove(db, bead_id, blocker_id))

    async def claim(
        self, bead_id: str, assignee: str, *, lease_id: str, lease_s: int | None = None
    ) -> Claim:
        checks.check_lease(lease_id, lease_s)
        check_text(assignee, "/assignee", max_length=beads.MAX_TITLE)
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
        check_text(assignee, "/assignee", max_length=beads.MAX_TITLE)
        checks.check_tags(tags)
        request = leases.ClaimRequest(assignee, lease_id, lease_s or self._lease_s, parent_id, tags)
        for _ in range(_MAX_ATTEMPTS):
            if (claim := await self._claim_batcher.call(request)) is not None:
                return claim
            queue = await self._db.run_repeatable(lambda db: leases.read_queue_state(db, request))
            if queue.has_expired or queue.has_due:
                await self._db.run_repeatable(
                    partial(self._catch_up, expired=queue.has_expired, due=queue.has_due)
                )
            elif queue.lease_in_use:
                existing = await self._db.run_repeatable(lambda db: leases.find_claim(db, lease_id))
                if existing is not None:
                    return existing
            elif not queue.has_ready:
                return None
        return None  # other boxes claimed each ready bead

    async def heartbeat(self, bead_id: str, lease_id: str, *, lease_s: int | None = None) -> Claim:
        checks.check_lease(lease_id, lease_s)
        seconds = lease_s or self._lease_s
        return await self._db.run(lambda db: leases.heartbeat(db, bead_id, lease_id, seconds))

    async def release(
        self, bead_id: str, lease_id: str, *, delay_s: int = 0, note: str = ""
    ) -> Bead:
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
        text = json_text(result, "/result", max_bytes=beads.MAX_DOCUMENT)
        forced = "admin" in context.current().scopes
        if lease_id is not None and outcome != "cancelled":
            request = closing.CloseRequest(bead_id, lease_id, outcome, note, text)
            if (closed := await self._close_batcher.call(request)) is not None:
                return closed
        return await self._db.run(
            lambda db: closing.close(
                db,
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

        where, values = f"WHERE {leases.READY}", []
        if parent_id is not None:
            where += " AND b.parent_id = %s"
            values.append(parent_id)
        if after is not None:
            where += " AND (b.priority, b.rank, b.id) > (%s, %s, %s)"
            values += after
        order = f"{where} ORDER BY b.priority, b.rank, b.id LIMIT %s"
        page_rows, has_more = page_of(await self._select_beads(order, (*values, limit + 1)), limit)
        next_cursor = encode_cursor(listing, ready_sort_key(page_rows[-1])) if has_more else None
        return Page(
            items=self._damaged.readable_rows(page_rows, bead_from_row), next_cursor=next_cursor
        )

    async def show(self, bead_id: str) -> Bead:
        bead, expired = await self._db.run_repeatable(lambda db: find(db, bead_id))
        return (await self._db.run(lambda db: lock_bead(db, bead_id))).bead if expired else bead

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
        where = "".join(f" AND b.{name} = %s" for name in equals)
        values: tuple[object, ...] = tuple(equals.values())
        if filter.tag is not None:
            where += " AND EXISTS (SELECT 1 FROM tags t WHERE t.tag = %s AND t.bead_id = b.id)"
            values += (filter.tag,)
        if filter.id_prefix is not None:
            where += " AND b.id >= %s AND b.id < %s"
            values += checks.id_bounds(filter.id_prefix)
        if after is not None:
            where += " AND b.id > %s"
            values += tuple(after)
        order, values = f"WHERE TRUE{where} ORDER BY b.id LIMIT %s", (*values, limit + 1)
        page_rows, has_more = page_of(
            await self._select_beads(order, values, schedules=False), limit
        )
        items = self._damaged.readable_rows(page_rows, bead_from_row)
        return Page(
            items=items,
            next_cursor=encode_cursor(listing, (page_rows[-1][0],)) if has_more else None,
        )

    async def _create(self, spec: BeadSpec, parent_id: str | None) -> tuple[Bead, bool]:
        draft = create.BeadDraft(self.deps.ids(), checks.check_spec(spec), parent_id)
        if draft.is_simple and (bead := await self._create_batcher.call(draft)) is not None:
            return bead, True
        return await self._db.run(lambda db: create.create(db, draft))

    async def _create_batch(self, drafts: Sequence[create.BeadDraft]) -> Sequence[Bead | None]:
        return await self._db.run_repeatable(lambda db: create.create_simple(db, drafts))

    async def _close_batch(self, requests: Sequence[closing.CloseRequest]) -> Sequence[Bead | None]:
        return await self._db.run_repeatable(lambda db: closing.close_by_lease(db, requests))

    async def _claim_batch(self, requests: Sequence[leases.ClaimRequest]) -> Sequence[Claim | None]:
        from psycopg.errors import UniqueViolation

        async def job(db: Connection) -> Sequence[Claim | None]:
            try:
                return await leases.claim_batch(db, requests)
            except UniqueViolation:
                if len(requests) > 1:
                    raise
                return [None]  # the lease already holds a bead

        return await self._db.run_repeatable(job)

    async def _select_beads(
        self, where: str, values: tuple[Any, ...], *, schedules: bool = True
    ) -> Sequence[tuple[Any, ...]]:
        async def job(db: Connection) -> Sequence[tuple[Any, ...]]:
            expired, due = await create.any_expired_or_due(db)
            if expired or (due and schedules):
                await self._catch_up(db, expired, due and schedules)
            return await raw_beads(db, where, values)

        return await self._db.run_repeatable(job)

    async def _catch_up(self, db: Connection, expired: bool, due: bool) -> None:
        """Expire leases and create due children of schedules."""
        async with db.transaction():
            if expired:
                await expire_leases(db)
            if due:
                await create.create_due(db, self.deps.ids, self._damaged)
