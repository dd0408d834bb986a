"""One agent that fills the shared storage, at a real API: it gets an error, the box and its
operator continue, and readiness reports it."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from helpers import until
from support.api_box import SLOTS, ApiBox

from agentbox.client import ApiError, BoxClient
from agentbox.plan.model import SlotPlan

AGENT = "01900000-0000-7000-8000-000000000001"
STATE = "01900000-0000-7000-8000-000000000002"
TRACE = "a" * 32
GATEWAY_TOKEN = "a-token-of-this-boot"
SMALL = {
    **SLOTS,
    "orchestrator": SlotPlan(use="off", required=False),
    "events": SlotPlan(
        use="local-jsonl", required=False, options={"fsync": "group", "max_size": 2 << 20}
    ),
}


def full(answers: Callable[[], Any]) -> dict[str, Any]:
    """The problem of the first call that is refused for lack of space."""
    for _ in range(500):
        try:
            answers()
        except ApiError as error:
            return {**error.problem, "status": error.status}
    raise AssertionError("nothing refused it")


def test_a_journal_that_agents_filled_is_the_boxs_still(own_box: Callable[..., ApiBox]) -> None:
    """507 for what an agent appends and writes anywhere; the operator appends and reads; then
    `/ready` and `/health` name the slot, and reads continue."""
    box = own_box(slots=SMALL, orchestrator=False)
    box.paths.token("gateway").write_text(GATEWAY_TOKEN)
    headers = {
        "Authorization": f"Bearer {GATEWAY_TOKEN}",
        "Agentbox-On-Behalf-Of": f"{AGENT} {STATE} {AGENT} {TRACE} coder",
    }
    event = {"type": "x.flood", "data": {"x": "y" * 10_000}}
    with (
        httpx.Client(base_url=box.url, headers=headers, trust_env=False) as agent,
        box.client() as operator,
    ):
        sizes = [10] * 20 + [1] * 10  # the last ones fill the space that a large one left
        statuses = [
            agent.post("/v1/events", json={"events": [event] * size}).status_code for size in sizes
        ]
        assert statuses[0] == 201
        assert statuses[-1] == 507
        stored = agent.put(f"/v1/memory/ns/state.{STATE}/keys/k", json={"value": 1})
        assert (stored.status_code, stored.json()["config_path"]) == (
            507,
            "adapters.events.max_size",
        )
        assert agent.get("/v1/events").status_code == 200
        operator.call("append_events", body={"events": [{"type": "test.goes-on", "data": {}}]})
        assert operator.ready().degraded == ()
        problem = full(lambda: operator.call("append_events", body={"events": [event] * 10}))
        assert (problem["status"], problem["config_path"]) == (507, "adapters.events.max_size")
        until(lambda: operator.ready().degraded == ("events",), 30)
        assert operator.health().adapters["events"].state == "degraded"
        assert operator.call("read_events", query={"limit": 1})["events"]


def test_refusals_that_agents_make_fill_their_part_only(own_box: Callable[..., ApiBox]) -> None:
    """Then an event of a denial is counted as lost, and lifecycle events of agents are journalled
    as usual."""
    box = own_box(slots={**SMALL, "orchestrator": SLOTS["orchestrator"]})
    box.paths.token("gateway").write_text(GATEWAY_TOKEN)
    headers = {
        "Authorization": f"Bearer {GATEWAY_TOKEN}",
        "Agentbox-On-Behalf-Of": f"{AGENT} {STATE} {AGENT} {TRACE} coder",
    }
    event = {"type": "x.flood", "data": {"x": "y" * 10_000}}

    def refused_and_run(operator: BoxClient, ended: Callable[[list[str]], bool]) -> list[str]:
        """Types of the journal's events from a start that is refused on, once an agent that was started after it has ended."""
        since = operator.call("read_events", query={"limit": 1})["head_seq"]
        with pytest.raises(ApiError):
            operator.call("spawn", body={"name": "strays", "argv": ["true"], "cwd": "/proc"})
        operator.call("spawn", body={"name": "fine", "argv": ["true"]})

        def event_types() -> list[str]:
            found = operator.call("read_events", query={"since": since, "limit": 1000})["events"]
            return [one["type"] for one in found]

        until(lambda: "agent.exited" in event_types() and ended(event_types()))
        return event_types()

    def lost(_told: list[str]) -> bool:
        metrics = httpx.get(f"{box.metrics_url}/metrics", trust_env=False).text
        return 'agentbox_journal_lost_total{reason="quota-exceeded"} 1.0' in metrics

    with (
        httpx.Client(base_url=box.url, headers=headers, trust_env=False) as agent,
        box.client() as operator,
    ):
        refused_and_run(operator, lambda types: "policy.denied" in types)
        sizes = [10] * 20 + [1] * 10
        assert [
            agent.post("/v1/events", json={"events": [event] * size}).status_code for size in sizes
        ][-1] == 507
        assert "policy.denied" not in refused_and_run(operator, lost)
