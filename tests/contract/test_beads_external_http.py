"""beads external-http meets the contract of the slot against the API of another box, also over a
bad connection (B16)."""

import asyncio
import itertools
from dataclasses import replace

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.beads import BeadsContract
from agentbox_testkit.contracts.beads_common import LEASE, make_epic, make_task, new_lease_id, spec
from agentbox_testkit.fault_proxy import FaultProxy
from support.api_box import TOKEN
from support.ports import free_port
from support.served_store import ServedStore

from agentbox.adapters.remote.beads import ExternalHttpBeads
from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import (
    BackendError,
    ContractMismatch,
    LeaseLost,
    PermissionDenied,
    SlotUnavailable,
)


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = ServedStore(
        "beads",
        "external-http",
        tmp_path,
        served="local-sqlite",
        clock=clock,
        options={"lease_seconds": 60},
    )
    await made.serve()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest_asyncio.fixture
async def line(store):
    async with FaultProxy(store.port) as relay:
        yield relay


@pytest_asyncio.fixture
async def distant(store, line):
    """The adapter, over the bad connection."""
    return await store.with_options(endpoint=line.url).open()


@pytest.mark.transport
class TestExternalHttp(BeadsContract):
    async def test_B16_a_lost_reply_makes_no_second_bead(self, distant, line, adapter):
        """With a key and without one; the creator is recorded correctly where no other principal is
        possible."""
        line.lose = 1
        epic, created = await distant.create_epic(spec("one"))
        line.lose = 2
        child, _ = await distant.create_child(epic.id, spec("two", dedup_key="k"))
        assert (created, line.lost) == (True, 3)
        assert [bead.id for bead in (await adapter.list()).items] == [epic.id, child.id]
        assert await adapter.show(epic.id) == epic
        assert epic.dedup_key.startswith("req:")

    async def test_B16_a_lost_reply_makes_no_second_claim(self, distant, line, adapter):
        """The caller's lease is the current one; another bead stays open."""
        _, (first, second) = await make_epic(adapter, 2)
        line.lose = 1
        claim = await distant.claim_next("w", lease_id=LEASE)
        line.lose = 1
        assert await distant.claim(first.id, "w", lease_id=LEASE) == claim
        line.lose = 1
        beat = await distant.heartbeat(first.id, LEASE, lease_s=300)
        assert (claim.bead.id, claim.bead.attempts, beat.bead.attempts, line.lost) == (
            first.id,
            1,
            1,
            3,
        )
        assert (await adapter.show(second.id)).status == "open"

    async def test_B16_a_lost_reply_of_a_release_is_resolved(self, distant, line, adapter):
        """The bead is open again, whoever has claimed it since; a lease that was lost before stays
        an error."""
        bead = await make_task(adapter)
        await distant.claim(bead.id, "w", lease_id=LEASE)
        line.lose = 1
        released = await distant.release(bead.id, LEASE, note="gave up")
        assert (released.status, released.attempts, line.lost) == ("open", 1, 1)
        assert await adapter.show(bead.id) == released
        with pytest.raises(LeaseLost):
            await distant.release(bead.id, new_lease_id())

    async def test_B16_a_lost_reply_makes_no_second_change(self, distant, line, adapter):
        """Dependencies and the end of a bead."""
        _, (first, second) = await make_epic(adapter, 2)
        line.lose = 1
        await distant.add_dep(second.id, first.id)
        line.lose = 1
        closed = await distant.close_bead(first.id, result={"n": 1})
        line.lose = 1
        await distant.remove_dep(second.id, first.id)
        assert (await adapter.show(first.id), line.lost) == (closed, 3)
        assert closed.revision == first.revision + 1

    async def test_B16_a_line_that_breaks_again_and_again_is_told(self, distant, line, adapter):
        """After three tries, as SlotUnavailable; the next call is served again."""
        line.lose = 3
        with pytest.raises(SlotUnavailable):
            await distant.ready()
        assert line.lose == 0
        assert (await distant.ready()).items == ()

    async def test_B16_many_calls_over_a_bad_line_lose_nothing(self, distant, line, adapter):
        """A reply is dropped after every tenth claim while 8 workers drain 60 beads: each is closed once."""
        await make_epic(adapter, 60)
        done, turns = [], itertools.count()

        async def work():
            while (claim := await distant.claim_next("w", lease_id=new_lease_id())) is not None:
                line.lose += next(turns) % 10 == 0
                await distant.close_bead(claim.bead.id, lease_id=claim.lease_id)
                done.append(claim.bead.id)

        await asyncio.gather(*(work() for _ in range(8)))
        assert len(done) == len(set(done)) == 60
        assert line.lost == 6

    async def test_B16_cancelled_calls_leave_the_line_usable(self, adapter):
        """300 calls cancelled at every moment, three times the size of the pool: the next one is
        served at once."""
        calls = [asyncio.ensure_future(adapter.ready()) for _ in range(300)]
        for turn, call in enumerate(calls):
            if turn % 3 == 0:
                await asyncio.sleep(0.001)
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert sum(call.cancelled() for call in calls) > 100
        async with asyncio.timeout(5):
            assert (await adapter.ready()).items == ()

    @pytest.mark.parametrize(
        "endpoint",
        ["http://192.0.2.1:9090", "http://box.example.org", "ftp://127.0.0.1", "127.0.0.1:1", ""],
    )
    async def test_B16_an_address_that_may_not_be_used(self, store, endpoint):
        """Plain http is allowed on this machine only; an invalid address is reported by its key."""
        with pytest.raises(BackendError, match=r"loopback|endpoint"):
            await store.with_options(endpoint=endpoint).open()

    async def test_B16_who_may_not_and_who_is_not_there(self, store):
        """A wrong token, no server at the address: typed, and without the token in the message."""
        wrong = store.with_token(token=f"{TOKEN}x")
        with pytest.raises(PermissionDenied) as refused:
            await wrong.open(Deadline.after(5))
        assert TOKEN not in str(refused.value)
        with pytest.raises(SlotUnavailable):
            await store.with_options(endpoint=f"http://127.0.0.1:{free_port()}").open()

    async def test_B16_another_contract_is_refused(self, store):
        """By its major version."""

        class Next(ExternalHttpBeads):
            contract_version = "2.0.0"

        with pytest.raises(ContractMismatch) as refused:
            await Next(replace(store.cfg), Deps(metrics=Metrics())).open(Deadline.after(5))
        assert refused.value.members["mismatches"] == [
            {"slot": "beads", "ours": "2.0.0", "theirs": "1.0.0"}
        ]
