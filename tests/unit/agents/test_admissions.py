"""What the registry hands to admission, and the records that it makes of the answers. No process runs."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.admission import CONFIG, LEAD, OPERATOR

from agentbox.agents.registry.admissions import admit_agent, gather_inputs
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.store import AgentStore
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import NotFound, QuotaExceeded


@pytest.fixture
def host(tmp_path: Path) -> HostState:
    """Its store is closed: admission writes nothing."""
    config = replace(CONFIG, paths=Paths(tmp_path))
    config.paths.state.mkdir(parents=True)
    return HostState(config, AgentStore(config.state_dir), "mark")


def admitted(host: HostState, spec: AgentSpec) -> AgentRecord:
    record, _ = admit_agent(host, spec, OPERATOR, once=False)
    host.entries[record.agent_id] = record
    return record


def test_a_record_says_for_whom_and_below_whom(host: HostState) -> None:
    """A root has its own session and state; a child has session and trace of its parent."""
    lead = admitted(host, LEAD)
    assert (lead.session_id, lead.state_id, lead.depth) == (lead.agent_id, lead.agent_id, 0)
    assert (lead.principal, lead.request_id, lead.state) == ("urn:op", "1", "starting")
    child = admitted(host, AgentSpec(name="reader", agent="reader", parent_id=lead.agent_id))
    assert (child.session_id, child.trace_id, child.depth) == (lead.session_id, lead.trace_id, 1)
    assert child.state_id == child.agent_id


def test_a_call_brings_its_session_and_trace(host: HostState) -> None:
    """Those of the requester, for an agent without a parent."""
    requester = replace(OPERATOR, session_id="session", trace_id="trace")
    record, _ = admit_agent(host, LEAD, requester, once=True)
    assert (record.session_id, record.trace_id, record.once) == ("session", "trace", True)


def test_agents_that_are_over_take_no_place(host: HostState) -> None:
    """Running ones are counted by table."""
    first, second = admitted(host, LEAD), admitted(host, LEAD)
    assert gather_inputs(host, LEAD, once=False).usage.running == {"lead": 2}
    with pytest.raises(QuotaExceeded):
        admitted(host, LEAD)
    first.over = True
    assert admitted(host, LEAD).depth == 0
    assert gather_inputs(host, LEAD, once=False).usage.running == {"lead": 2}
    assert not second.over


def test_an_unknown_parent_is_none(host: HostState) -> None:
    """Admission tells it by the id that the spec names."""
    spec = replace(LEAD, parent_id="gone")
    assert gather_inputs(host, spec, once=False).parent is None
    with pytest.raises(NotFound, match="cannot find agent gone"):
        admitted(host, spec)


def test_a_refused_agent_reserves_no_state(host: HostState) -> None:
    """A state is assigned after the fold alone."""
    host.config = replace(host.config, max_agents=0)
    with pytest.raises(QuotaExceeded):
        admitted(host, AgentSpec(name="x", argv=("true",), state="notes"))
    host.config = replace(host.config, max_agents=1)
    assert admitted(host, AgentSpec(name="y", argv=("true",), state="notes")).spec.state == "notes"
    assert [state.label for state in host.states._by_name.values()] == ["y"]
