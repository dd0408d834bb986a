"""What became of agents, from the ordered record of who runs them into the journal, each line once (O15)."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentbox.adapters.orchestrator.over_rpc import OverRpc
from agentbox.contracts.agent_host.record import RecordLine, follow_reader, follow_record
from agentbox.contracts.events import NewEvent
from agentbox.core import clock
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.policy.limits.registry import LIMITS

if TYPE_CHECKING:
    from agentbox.api.services import Services

LOCAL = "local-process"


def record_of_agents(services: "Services") -> "asyncio.Task[None] | None":
    """The task that brings it in; None where there are no agents, or nothing is journalled: agent-host keeps it then."""
    slots = services.plan.slots
    if "off" in (slots["orchestrator"].use, slots["events"].use):
        return None
    source = f"urn:agentbox:box:{services.plan.name}"

    async def take(lines: tuple[RecordLine, ...]) -> None:
        """Agents make refusals as they like: these fill the agents' part of the journal, and what of them is beyond is lost."""
        journal = services.container.journal
        refusal = journal.refuses_agents
        kept = [line for line in lines if refusal is None or line.type != "policy.denied"]
        await services.container.events.append([_event(line, source) for line in kept])
        if refusal is not None:
            journal.count_lost(refusal, len(lines) - len(kept))
        for line in lines:
            if (counter := services.metrics.at_a_limit.get(line.type)) and (limit := line.data.get("limit")) in LIMITS:
                counter.labels(limit).inc()

    async def read(after: int, wait_s: float) -> Sequence[JsonObj]:
        """From the child of external-stdio, as long as one serves that keeps a record: a host keeps its own."""
        serving = services.container.serving("orchestrator")
        if isinstance(serving, OverRpc) and "record" in serving.capabilities:
            return await serving.read_record(after, wait_s)
        raise SlotUnavailable("no record is kept here", slot="orchestrator", impl=serving.impl, since=None)

    if slots["orchestrator"].use == LOCAL:
        return asyncio.ensure_future(follow_record(services.paths, take))
    return asyncio.ensure_future(follow_reader(read, take))


def _event(line: RecordLine, source: str) -> NewEvent:
    data = {**line.data, "at": clock.to_wire(line.at)}
    who = line.agent_id or None  # none: an agent that was refused its start
    return NewEvent(
        type=line.type, data=data, source=source, subject=who, agent_id=who, session_id=line.session_id or None,
        trace_id=line.trace_id or None, id=line.id,
    )  # fmt: skip
