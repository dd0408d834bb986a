"""Whatever fails between a caller and a store, a requested change is stored once."""

import pytest
from agentbox_testkit.fault_proxy import FaultProxy
from agentbox_testkit.faulty_adapter import FAULTS, FaultyAdapter
from agentbox_testkit.local_store import LocalStore
from postgres_store import PostgresStore
from support.agent_host import AgentHostBox
from support.fault_workload import WORK

PLANS = {kind: {kind: 0.4} for kind in FAULTS} | {"all": dict.fromkeys(FAULTS, 0.12)}
LOCAL = {
    "beads": "local-sqlite",
    "pods": "local-fs",
    "memory": "local-sqlite",
    "events": "local-jsonl",
}


def happened(faulty: FaultyAdapter, plan: str) -> None:
    """A plan that does nothing would prove nothing."""
    assert set(faulty.fault_counts) == set(PLANS[plan])
    assert min(faulty.fault_counts.values()) > 3


@pytest.mark.sampled(3, each=("slot",))
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("slot", LOCAL)
async def test_local_classes(slot: str, plan: str, tmp_path) -> None:
    """Each kind of fault alone, and all together."""
    store = LocalStore(slot, LOCAL[slot], tmp_path)  # type: ignore[arg-type]
    try:
        plain = await store.open()
        faulty = FaultyAdapter(plain, seed=7, plan=PLANS[plan])
        await WORK[slot](faulty, plain)
        happened(faulty, plan)
        assert (await plain.health()).state == "ok"
    finally:
        await store.close_all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("plan", PLANS)
async def test_local_process(plan: str, tmp_path) -> None:
    """The same of processes."""
    box = AgentHostBox(tmp_path)
    box.start()
    store = LocalStore("orchestrator", "local-process", tmp_path)
    try:
        plain = await store.open()
        faulty = FaultyAdapter(plain, seed=7, plan=PLANS[plan])
        await WORK["orchestrator"](faulty, plain)
        happened(faulty, plan)
    finally:
        await store.close_all()
        box.stop()


@pytest.fixture(params=["beads", "memory"])
async def shared(request, postgres, tmp_path):
    """A store of that slot in a schema of its own, on the server's real clock."""
    made = PostgresStore(request.param, postgres, tmp_path, {"timeout_seconds": 2}).with_secrets(
        dsn=postgres.dsn()
    )
    yield made
    await made.remove()


@pytest.mark.sampled(2)
async def test_external_pg(shared) -> None:
    """All faults together, before classes that share one server."""
    plain = await LocalStore.open(shared)
    faulty = FaultyAdapter(plain, seed=7, plan=PLANS["all"])
    await WORK[plain.slot](faulty, plain)
    happened(faulty, "all")


@pytest.mark.sampled(2)
async def test_external_pg_over_a_bad_line(shared, postgres) -> None:
    """Connections that are refused, cut, and whose replies are lost: a commit may have happened, and happens once."""
    plain = await LocalStore.open(shared)
    async with FaultProxy(postgres.port) as proxy:
        line = postgres.dsn().replace(f":{postgres.port}/", f":{proxy.url.rpartition(':')[2]}/")
        adapter = await LocalStore.open(shared.with_secrets(dsn=line))
        proxy.slow, proxy.lose, proxy.truncate, proxy.refuse = 0.002, 4, 3, 2
        await WORK[plain.slot](adapter, plain)
        assert (proxy.lost, proxy.truncate, proxy.refuse) == (4, 0, 0)
        await adapter.close()


@pytest.mark.parametrize("plan", [{"slow": 0.6, "drop": 0.5}, {"lose": 0.1}])
def test_a_plan_that_means_nothing_is_refused(plan, tmp_path) -> None:
    """Shares of more than all calls, or of an unknown fault."""
    adapter = LocalStore("beads", "local-sqlite", tmp_path).make()
    with pytest.raises(ValueError, match="shares of slow, flaky"):
        FaultyAdapter(adapter, 1, plan)
