"""What is stored of ended agents: a number, an amount of output, and a number of characters of
specs."""

from dataclasses import replace
from pathlib import Path

from support.host_configs import host_config

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.retention import select_surplus
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
