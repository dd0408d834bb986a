"""How much agents may have written down."""

import pytest

from agentbox.api.auth.agent_rates import BURST, WRITE_OVERHEAD, AgentWriteLimiter
from agentbox.api.auth.authentication import Caller
from agentbox.contracts.routes.registry import ROUTES
from agentbox.contracts.routes.route import Route
from agentbox.core.slot_errors import RateLimited
from agentbox.policy.limits.registry import WRITE_RATE

BY_NAME = {route.name: route for route in ROUTES}


def agent(name: str = "coder", agent_id: str = "1") -> Caller:
    return Caller(f"urn:agentbox:agent:{agent_id}", agent_id=agent_id, pod_prefix=f"state/{name}/")


def take(rates: AgentWriteLimiter, who: Caller, route: Route, length: int = 0) -> None:
    rates.acquire(who, route, {"content-length": str(length)})


@pytest.mark.limit("write_rate")
def test_a_flood_is_told_when_to_go_on() -> None:
    """Appends count with their size, and after a pause calls are accepted again; other states are
    not delayed."""
    now = [0.0]
    rates, append = AgentWriteLimiter(lambda: now[0]), BY_NAME["append_events"]
    for _ in range(BURST // (WRITE_OVERHEAD + 64 * WRITE_OVERHEAD)):
        take(rates, agent(), append, 64 * WRITE_OVERHEAD)
    with pytest.raises(RateLimited) as caught:
        take(
            rates, agent(agent_id="2"), append, 64 * WRITE_OVERHEAD
        )  # another run, or another agent of that state
    assert 0 < caught.value.retry_after <= 65 * WRITE_OVERHEAD / WRITE_RATE
    take(rates, agent("other"), append, 64 * WRITE_OVERHEAD)
    now[0] = caught.value.retry_after + 0.001
    take(rates, agent(), append, 64 * WRITE_OVERHEAD)


def test_reads_and_operators_are_not_counted() -> None:
    """Only what an agent has written down is."""
    rates = AgentWriteLimiter(lambda: 0.0)
    for _ in range(3):
        take(rates, agent(), BY_NAME["read_events"], BURST)
        take(
            rates,
            Caller("urn:agentbox:operator", frozenset({"admin"})),
            BY_NAME["append_events"],
            BURST,
        )
    take(rates, agent(), BY_NAME["append_events"], BURST * 2)
    with pytest.raises(RateLimited):
        take(rates, agent(), BY_NAME["store_memory"])


def test_an_agent_that_is_started_costs_its_spec() -> None:
    """Its labels and arguments are stored with it."""
    rates = AgentWriteLimiter(lambda: 0.0)
    for _ in range(BURST // (WRITE_OVERHEAD + (1 << 20))):
        take(rates, agent(), BY_NAME["spawn"], 1 << 20)
    with pytest.raises(RateLimited):
        take(rates, agent(), BY_NAME["spawn"], 1 << 20)


def test_an_object_costs_a_line() -> None:
    """Its bytes count for the quota of its container, and are not part of the journal."""
    rates = AgentWriteLimiter(lambda: 0.0)
    for _ in range(BURST // WRITE_OVERHEAD):
        take(rates, agent(), BY_NAME["write_pod"], 64 << 20)
    with pytest.raises(RateLimited):
        take(rates, agent(), BY_NAME["write_pod"])
