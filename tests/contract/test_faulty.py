"""Whatever goes wrong between a caller and a store, what was asked for is there once (slots.md 7)."""

import pytest

from agentbox.testing.agent_host import AgentHostBox
from agentbox.testing.fault_work import WORK
from agentbox.testing.faulty import FAULTS, Faulty
from agentbox.testing.local_store import LocalStore

PLANS = {kind: {kind: 0.4} for kind in FAULTS} | {"all": dict.fromkeys(FAULTS, 0.12)}
LOCAL = {"beads": "local-sqlite", "pods": "local-fs", "memory": "local-sqlite", "events": "local-jsonl"}


def happened(faulty: Faulty, plan: str) -> None:
    """A plan that does nothing would prove nothing."""
    assert set(faulty.happened) == set(PLANS[plan])
    assert min(faulty.happened.values()) > 3


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("slot", LOCAL)
async def test_local_classes(slot: str, plan: str, tmp_path) -> None:
    """Each kind of fault alone, and all together."""
    store = LocalStore(slot, LOCAL[slot], tmp_path)  # type: ignore[arg-type]
    try:
        plain = await store.open()
        faulty = Faulty(plain, seed=7, plan=PLANS[plan])
        await WORK[slot](faulty, plain)
        happened(faulty, plan)
        assert (await plain.health()).state == "ok"
    finally:
        await store.close_all()


@pytest.mark.parametrize("plan", PLANS)
async def test_local_process(plan: str, tmp_path) -> None:
    """The same of processes."""
    box = AgentHostBox(tmp_path)
    box.start()
    store = LocalStore("orchestrator", "local-process", tmp_path)
    try:
        plain = await store.open()
        faulty = Faulty(plain, seed=7, plan=PLANS[plan])
        await WORK["orchestrator"](faulty, plain)
        happened(faulty, plan)
    finally:
        await store.close_all()
        box.stop()


@pytest.mark.parametrize("plan", [{"slow": 0.6, "drop": 0.5}, {"lose": 0.1}])
def test_a_plan_that_means_nothing_is_refused(plan, tmp_path) -> None:
    """Shares of more than all calls, or of a fault that nobody knows."""
    adapter = LocalStore("beads", "local-sqlite", tmp_path).make()
    with pytest.raises(ValueError, match="shares of slow, flaky"):
        Faulty(adapter, 1, plan)
