"""beads external-pg meets the contract of the slot against a real PostgreSQL, and the further
demands of a shared server."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import psycopg
import pytest
import pytest_asyncio
from agentbox_testkit.clock import ManualClock
from agentbox_testkit.contracts.beads import BeadsContract
from agentbox_testkit.contracts.beads_common import make_epic, make_task, new_lease_id, spec
from agentbox_testkit.local_store import LocalStore
from draining import create, drain
from postgres_store import PostgresStore, ServerClock

from agentbox.adapters.beads.external_pg import ExternalPgBeads
from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.contracts.beads import BeadFilter
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import AdapterError, IntegrityError


@pytest.fixture
def clock(postgres):
    return ServerClock(postgres)


@pytest_asyncio.fixture
async def store(postgres, clock, tmp_path):
    made = PostgresStore("beads", postgres, tmp_path, {"lease_seconds": 60})
    yield made
    await made.remove()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


async def until_it_answers(adapter, seconds=15):
    """Waits for the same instance to be well again."""
    async with asyncio.timeout(seconds):
        while (await adapter.health()).state != "ok":
            await asyncio.sleep(0.05)


class TestExternalPg(BeadsContract):
    @pytest.fixture
    def processes(self, full):
        return 10 if full else 4

    async def test_B17_two_boxes_share_beads_without_overlap(self, store, adapter):
        """Two instances, each with a pool of its own, eight workers each: every bead exactly once."""
        _, children = await make_epic(adapter, 200)
        other = await store.open()
        claimed = []

        async def work(box, name):
            while (claim := await box.claim_next(name, lease_id=new_lease_id())) is not None:
                claimed.append(claim.bead.id)

        await asyncio.gather(*(work(box, f"w{n}") for box in (adapter, other) for n in range(8)))
        assert sorted(claimed) == sorted(child.id for child in children)

    async def test_B17_the_clock_is_the_servers(self, store, adapter):
        """A box whose own clock shows 2001 gets a lease from the server's time on."""
        wrong = Deps(metrics=Metrics(), clock=ManualClock(datetime(2001, 1, 1, tzinfo=UTC)))
        box = ExternalPgBeads(store.cfg, wrong)
        await box.open(Deadline.after(10))
        try:
            store.change(
                "CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql AS 'SELECT 4102444800000'"
            )
            bead = await make_task(box)
            claim = await box.claim(bead.id, "w", lease_id=new_lease_id(), lease_s=30)
        finally:
            await box.close()
        assert bead.created_at == datetime(2100, 1, 1, tzinfo=UTC)
        assert claim.expires_at == bead.created_at + timedelta(seconds=30)

    async def test_B17_after_the_servers_clock_went_back_nothing_stays_claimed_in_the_future(
        self, store, clock, adapter
    ):
        """A bead whose claimant died is open once its lease has expired, counted from the new time;
        one that was renewed stays claimed."""
        dead, alive = await make_task(adapter), await make_task(adapter)
        held = new_lease_id()
        await adapter.claim(dead.id, "dead", lease_id=new_lease_id(), lease_s=60)
        await adapter.claim(alive.id, "alive", lease_id=held, lease_s=60)
        clock.set_wall(clock.now() - timedelta(days=1))
        await adapter.heartbeat(alive.id, held, lease_s=3600)
        other = await store.open()
        now = clock.now()
        assert (await other.show(dead.id)).lease_expires_at == now + timedelta(seconds=60)
        assert (await other.show(alive.id)).lease_expires_at == now + timedelta(seconds=3600)
        clock.advance(61)
        assert (await other.show(dead.id)).status == "open"
        assert (await other.show(alive.id)).status == "claimed"

    async def test_B17_a_step_back_is_seen_by_boxes_that_stay_open(self, store, clock, adapter):
        """By the next health check of the slot, of either box; a further check shortens no lease."""
        other = await store.open()
        await adapter.health()
        bead = await make_task(adapter)
        await adapter.claim(bead.id, "dead", lease_id=new_lease_id(), lease_s=60)
        clock.set_wall(clock.now() - timedelta(seconds=40))
        for box in (other, adapter, other):
            assert (await box.health()).state == "ok"
            assert (await box.show(bead.id)).lease_expires_at == clock.now() + timedelta(seconds=60)
        clock.advance(30)
        assert (await other.health()).state == "ok"
        assert (await other.show(bead.id)).status == "claimed"
        clock.advance(31)
        assert (await other.show(bead.id)).status == "open"

    async def test_B17_a_box_says_that_a_newer_one_migrated_the_schema(self, store, adapter):
        """While it runs; started again it would be refused."""
        store.change("INSERT INTO migrations VALUES (99, '0099_newer.sql', 'x')")
        health = await adapter.health()
        assert health.state == "degraded"
        assert (
            health.detail == f"a newer version has migrated schema {store.schema}: update this box"
        )

    async def test_B17_a_damaged_bead_breaks_no_listing_and_holds_up_no_schedule(
        self, store, clock, adapter
    ):
        """It is reported, the rest is listed page by page, and the slot is degraded."""
        epic, children = await make_epic(adapter, 5)
        schedule, _ = await adapter.create_epic(spec("schedule", every="PT1H"))
        store.change(
            "UPDATE beads SET data = '{no' WHERE id = ANY(%s)", [children[1].id, schedule.id]
        )
        rest = [one.id for one in children if one.id != children[1].id]
        clock.advance(7200)
        for listing in (partial(adapter.list, BeadFilter(parent_id=epic.id)), adapter.ready):
            found, cursor = [], ""
            while cursor is not None:
                page = await listing(limit=2, cursor=cursor or None)
                found, cursor = [*found, *(bead.id for bead in page.items)], page.next_cursor
            assert sorted(found) == sorted(rest)
        with pytest.raises(IntegrityError, match=f"bead {children[1].id}: its row is damaged"):
            await adapter.show(children[1].id)
        health = await adapter.health()
        assert (health.state, health.detail.endswith("listed in the log: 2")) == ("degraded", True)

    async def test_B17_a_damaged_bead_costs_no_other_claimer_its_own(self, store, adapter):
        """Concurrent claims: one gets the error about the damaged bead, each of the others a valid
        one."""
        _, children = await make_epic(adapter, 6)
        store.change("UPDATE beads SET data = '{no' WHERE id = %s", children[2].id)
        claims = await asyncio.gather(
            *(adapter.claim_next("w", lease_id=new_lease_id()) for _ in children),
            return_exceptions=True,
        )
        wrong = [one for one in claims if isinstance(one, BaseException)]
        assert [(type(one), children[2].id in one.message) for one in wrong] == [
            (IntegrityError, True)
        ]
        taken = [one.bead.id for one in claims if one not in wrong]
        assert sorted(taken) == sorted(one.id for one in children if one.id != children[2].id)

    async def test_B17_boxes_that_open_at_once_migrate_once(self, store):
        """Eight instances on a database without the schema: each opens, and each migration is
        applied once."""
        boxes = [store.make() for _ in range(8)]
        await asyncio.gather(*(box.open(Deadline.after(10)) for box in boxes))
        bead, _ = await boxes[0].create_epic(spec())
        assert await boxes[7].show(bead.id) == bead
        with store.session() as db:
            names = [
                (1, "0001_tables.sql"),
                (2, "0002_of_agents.sql"),
                (3, "0003_fewer_indexes.sql"),
            ]
            assert db.execute("SELECT number, name FROM migrations").fetchall() == names

    async def test_B17_a_server_that_stops_under_load_and_returns(self, store, adapter):
        """As in a crash: what was acknowledged is stored, every failure is typed, and the same
        instance continues."""
        told, failures, stopping = [], [], asyncio.Event()

        async def work(name):
            number = 0
            while not stopping.is_set():
                number += 1
                try:
                    bead, _ = await adapter.create_epic(spec(f"{name}/{number}"))
                    told.append(bead.id)
                except AdapterError as error:
                    failures.append(error)
                    await asyncio.sleep(0.01)

        workers = [asyncio.create_task(work(f"w{n}")) for n in range(8)]
        while len(told) < 100:
            await asyncio.sleep(0.01)
        await store.kill_backend()
        assert (await adapter.health()).state == "down"
        while not failures:  # a call that can be repeated waits for the server
            await asyncio.sleep(0.01)
        await asyncio.to_thread(store.server.start)
        await until_it_answers(adapter)
        before = len(told)
        while len(told) < before + 100:
            await asyncio.sleep(0.01)
        stopping.set()
        await asyncio.gather(*workers)
        assert failures
        kept = {bead.id for bead in await everything(adapter)}
        assert set(told) <= kept

    async def test_B17_killed_processes_lose_no_bead_and_close_none_twice(self, store, full):
        """One of four is killed at work on 200 beads; `bench/scale.py` has 8 and 10,000."""
        beads, kills = (400, 3) if full else (200, 1)
        # The server's own clock: leases end while the test runs.
        plain = store.with_secrets(dsn=store.server.dsn())
        adapter = await LocalStore.open(plain)
        await create(adapter, beads)
        found = await drain(plain, adapter, beads=beads, processes=4, tasks=2, kills=kills)
        assert (found.wrong(), found.killed) == ([], kills)

    @pytest.mark.timed
    async def test_C05_a_call_that_hangs_ends_when_it_is_cancelled(self, store, adapter):
        """Another session locks the table; the caller is free again at once, and the next call
        works."""
        bead = await make_task(adapter)
        with store.session() as db, db.transaction():
            db.execute("LOCK TABLE beads IN ACCESS EXCLUSIVE MODE")
            started = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await adapter.close_bead(bead.id)
            assert time.monotonic() - started < 1.5
        assert (await adapter.show(bead.id)).status == "open"

    async def test_C09_a_newer_schema_is_refused_and_left_alone(self, store):
        """With a message about it."""
        await store.open()
        await store.close_all()
        store.change("INSERT INTO migrations VALUES (99, '0099_later.sql', 'x')")
        with pytest.raises(IntegrityError, match="newer than"):
            await store.open()

    async def test_C09_another_migration_of_the_same_number_is_refused(self, store):
        """Its checksum differs."""
        await store.open()
        await store.close_all()
        store.change("UPDATE migrations SET sha256 = 'x' WHERE number = 1")
        with pytest.raises(IntegrityError, match="migration 1"):
            await store.open()

    async def test_C09_an_empty_schema_is_migrated(self, store):
        """One that an administrator created beforehand."""
        store.change(f'CREATE SCHEMA "{store.schema}"')
        adapter = await store.open()
        bead, _ = await adapter.create_epic(spec())
        assert await adapter.show(bead.id) == bead


async def everything(adapter):
    """All beads, over all pages."""
    found, cursor = [], None
    while True:
        page = await adapter.list(BeadFilter(), limit=500, cursor=cursor)
        found += page.items
        if (cursor := page.next_cursor) is None:
            return found


@pytest.mark.parametrize("analyzed", [True, False])
async def test_no_call_reads_the_whole_table(store, adapter, monkeypatch, analyzed):
    """However many unrelated beads there are, and whatever the server's statistics are."""
    epic, _ = await adapter.create_epic(spec())
    await create(adapter, 1000)
    store.change("ANALYZE beads" if analyzed else "SELECT 1")
    sent = []
    execute = psycopg.AsyncConnection.execute

    async def recorded(db, sql, values=None, **more):
        sent.append((sql, values))
        return await execute(db, sql, values, **more)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", recorded)
    held = new_lease_id()
    claim = await adapter.claim_next("w", lease_id=held)
    await adapter.heartbeat(claim.bead.id, held)
    await adapter.close_bead(claim.bead.id, lease_id=held)
    await adapter.claim_next("w", lease_id=new_lease_id(), tags=("none",))
    await adapter.create_child(epic.id, spec())
    await adapter.ready(limit=10)
    await adapter.list(BeadFilter(status="claimed"), limit=10)
    assert len(sent) >= 7
    with store.session() as db:
        for sql, values in sent:
            plan = "\n".join(line for (line,) in db.execute(b"EXPLAIN " + sql, values).fetchall())
            assert "Seq Scan on beads" not in plan, plan
