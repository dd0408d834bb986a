"""A damaged row of agents.db is reported and left unchanged; the others are used."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest
import pytest_asyncio
from support.host_configs import host_config

from agentbox.agents.approvals.request import ApprovalRequest
from agentbox.agents.config import HostConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.registry.reconcile import resume_agents
from agentbox.agents.registry.retention import surplus_agents
from agentbox.agents.registry.store import AgentStore
from agentbox.agents.states.state import StoredState
from agentbox.contracts.orchestrator import AgentSpec, Limits
from agentbox.core.paths import Paths

DAMAGE = ("'{'", "'[]'", "CAST(x'7bff7d' AS TEXT)")


@pytest.fixture
def config(tmp_path: Path) -> HostConfig:
    return host_config(Paths(tmp_path))


@pytest_asyncio.fixture
async def store(config: HostConfig) -> AsyncIterator[AgentStore]:
    """Three agents, approvals, states and events a, b and c; each agent is the parent of the next."""
    opened = AgentStore(config.state_dir)
    await opened.open()
    parent = None
    for name in "abc":
        spec = AgentSpec(
            name=name, argv=("true",), profile="sandboxed", restart="always", parent_id=parent
        )
        entry = AgentRecord(
            agent_id=name, spec=spec, limits=Limits(), principal="", request_id=name
        )
        used = StoredState(
            state_id=name, name=f"n-{name}", owner="o", label=name, first=name, created=1, used=1
        )
        await opened.admit(entry, used)
        await opened.save([], LifecycleEvent("agent.x", name, {}))
        asked = ApprovalRequest(
            id=name,
            agent_id=name,
            name=name,
            kind="tool",
            value="v",
            parameters={},
            asked=1,
            expires=2,
        )
        await opened.save_approval(name, time.time(), asked.to_row())
        parent = name
    yield opened
    await opened.close()


def damaged(config: HostConfig, statement: str) -> None:
    with apsw.Connection(str(config.state_dir / "agents.db")) as db:
        db.execute(statement)


@pytest.mark.parametrize("damage", DAMAGE)
async def test_each_table_is_read_without_its_damaged_row(
    store: AgentStore, config: HostConfig, damage: str
) -> None:
    """The health of the store has the number."""
    assert store.damaged.adjust_state("ok", "") == ("ok", "")
    for table, key, column in (
        ("agents", "agent_id", "row"),
        ("approvals", "id", "row"),
        ("record", "agent_id", "data"),
    ):
        damaged(config, f"UPDATE {table} SET {column} = {damage} WHERE {key} = 'b'")
    assert [one.agent_id for one in await store.entries()] == ["a", "c"]
    assert [one.id for one in await store.approvals()] == ["a", "c"]
    assert [one["agent_id"] for one in await store.read_record(0, 1000)] == ["a", "c"]
    assert [one["agent_id"] for one in await store.read_record(1, 1)] == ["c"]
    state, detail = store.damaged.adjust_state("ok", "")
    assert (state, detail.endswith("listed in the log: 3")) == ("degraded", True)


async def test_text_that_is_not_utf8(store: AgentStore, config: HostConfig) -> None:
    """Of states and requests, which are columns alone."""
    damaged(config, "UPDATE states SET owner = CAST(x'ff' AS TEXT) WHERE state_id = 'b'")
    damaged(config, "UPDATE requests SET principal = CAST(x'ff' AS TEXT) WHERE agent_id = 'b'")
    assert [one.state_id for one in await store.states("name IS NOT NULL ORDER BY state_id")] == [
        "a",
        "c",
    ]
    assert [request for _, request in await store.requests()] == ["a", "c"]
    assert store.damaged.adjust_state("ok", "")[0] == "degraded"


async def test_keys_that_are_not_utf8(store: AgentStore, config: HostConfig) -> None:
    """Each table has the others, and each row is reported in an escaped form."""
    keys = {
        "agents": "agent_id",
        "approvals": "id",
        "requests": "agent_id",
        "states": "state_id",
        "record": "agent_id",
    }
    for table, key in keys.items():
        damaged(config, f"UPDATE {table} SET {key} = CAST(x'ff41' AS TEXT) WHERE {key} = 'b'")
    assert [one.agent_id for one in await store.entries()] == ["a", "c"]
    assert [one.id for one in await store.approvals()] == ["a", "c"]
    assert [one["agent_id"] for one in await store.read_record(0, 1000)] == ["a", "c"]
    assert [one.state_id for one in await store.states("name IS NOT NULL ORDER BY state_id")] == [
        "a",
        "c",
    ]
    assert [request for _, request in await store.requests()] == ["a", "c"]
    named = {name.removeprefix("cannot read ").partition(":")[0] for name in store.damaged._names}
    assert named == {
        "\\xffA of agents",
        "\\xffA of approvals",
        "\\xffA of requests",
        "2 of record",
        "state \\xffA",
    }


async def test_nothing_that_is_damaged_is_deleted(store: AgentStore, config: HostConfig) -> None:
    """The event that cannot be read stays."""
    damaged(config, "UPDATE record SET data = '{' WHERE agent_id = 'b'")
    await store.discard_record(3)
    with apsw.Connection(str(config.state_dir / "agents.db")) as db:
        assert list(db.execute("SELECT agent_id FROM record")) == [("b",)]


async def test_an_agent_whose_parent_is_damaged_does_not_start_again(
    store: AgentStore, config: HostConfig
) -> None:
    """Its rights depend on its ancestors, which are unknown; an agent whose family is complete
    continues."""
    damaged(config, "UPDATE agents SET row = '{' WHERE agent_id = 'b'")
    table = AgentRegistry(HostState(config, store, "mark"))
    await table.load()
    resume_agents(table)
    assert [one.stop_requested for one in table.entries.values()] == [False, True]
    assert not list(surplus_agents(table.host, table.streams))
    await table.close()
    assert table.entries["c"].over
