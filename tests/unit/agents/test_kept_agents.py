"""What is stored of ended agents: a number, an amount of output, and a number of characters of
specs."""

from dataclasses import replace
from pathlib import Path

from support.host_configs import host_config

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.retention import select_surplus, surplus_agents
from agentbox.agents.registry.store import AgentStore
from agentbox.agents.runs.exits import lost_exit
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import AgentSpec, Limits
from agentbox.core.paths import Paths

CONFIG = replace(
    host_config(Paths(Path("/"))),
    keep_ended=3,
    keep_output=100,
    keep_specs=50,
)


def test_the_oldest_go_until_the_rest_keeps_to_each_bound() -> None:
    """Number, output and specs, each alone; the newest stay."""
    assert list(select_surplus([("a", 50, 25), ("b", 25, 15), ("c", 25, 10)], CONFIG)) == []
    assert list(select_surplus([("a", 0, 0), ("b", 0, 0), ("c", 0, 0), ("d", 0, 0)], CONFIG)) == [
        "a"
    ]
    assert list(select_surplus([("a", 60, 0), ("b", 60, 0), ("c", 40, 0)], CONFIG)) == ["a"]
    assert list(select_surplus([("a", 0, 1), ("b", 0, 40), ("c", 0, 20)], CONFIG)) == ["a", "b"]


def test_a_spec_counts_with_all_that_it_holds() -> None:
    """Words, labels and variables of a caller's are as long as a request allows."""
    spec = AgentSpec(
        name="x", argv=("sh", "-c", "x" * 1000), env={"A": "y" * 1000}, labels={"l": "z" * 200}
    )
    entry = AgentRecord(agent_id="id", spec=spec, limits=Limits(), principal="p", request_id="r")
    assert entry.spec_size > 2200


async def test_all_files_of_an_ended_agent_count(tmp_path: Path) -> None:
    """Results, and what programs of a sandbox left, as well as its own output; not while a caller
    will read one of them."""
    config = replace(host_config(Paths(tmp_path)), keep_output=10_000)
    store = AgentStore(config.state_dir)
    await store.open()
    registry = AgentRegistry(HostState(config, store, "mark"))
    for name in ("a", "b"):
        registry.entries[name] = entry = AgentRecord(
            agent_id=name,
            spec=AgentSpec(name=name, argv=("true",)),
            limits=Limits(),
            principal="",
            request_id=name,
        )
        entry.over, entry.exit = True, lost_exit()
        stream = registry.streams[name] = StreamLog(tmp_path / name, 1000)
        stream.close()
        (stream.directory / "exec/1").mkdir(parents=True)
        (stream.directory / "exec/1/first.stdout").write_bytes(bytes(6000))
    assert list(surplus_agents(registry.host, registry.streams)) == ["a"]
    registry.streams["a"].waiting = 1
    assert list(surplus_agents(registry.host, registry.streams)) == []
    registry.streams["a"].waiting = 0
    (tmp_path / "a/exec/1/first.stdout").write_bytes(bytes(3000))
    registry.streams["a"].recount()
    assert list(surplus_agents(registry.host, registry.streams)) == []
    await store.close()
