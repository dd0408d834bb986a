"""Copies the ordered event record of the agent host into the journal, each line once (O15)."""

import asyncio
from collections.abc import Mapping

from prometheus_client import Counter

from agentbox.adapters.runtime.slots import Slots
from agentbox.client.agent_host.lifecycle_consumer import consume_record, consume_record_of
from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.events import NewEvent
from agentbox.core import clock
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.policy.limits.registry import LIMITS

LOCAL = "local-process"


def journal_agent_events(
    plan: Plan, paths: Paths, slots: Slots, limit_counters: Mapping[str, Counter]
) -> "asyncio.Task[None] | None":
    """The task; None without agents or without a journal: agent-host then stores the record.
    `limit_counters` are by type of event.
    """
    rows = plan.slots
    if "off" in (rows["orchestrator"].use, rows["events"].use):
        return None
    source = f"urn:agentbox:box:{plan.name}"

    async def append(lines: tuple[LifecycleRecord, ...]) -> None:
        """Agents can cause denials at will: these fill the agents' part of the journal, and further
        ones are dropped and counted.
        """
        journal = slots.journal
        refusal = journal.agent_refusal
        accepted = [line for line in lines if refusal is None or line.type != "policy.denied"]
        await slots.events.append([to_event(line, source) for line in accepted])
        if refusal is not None:
            journal.count_lost(refusal, len(lines) - len(accepted))
        for line in lines:
            if (counter := limit_counters.get(line.type)) and (
                limit := line.data.get("limit")
            ) in LIMITS:
                counter.labels(limit).inc()

    if rows["orchestrator"].use == LOCAL:
        return asyncio.ensure_future(consume_record(paths, append))
    return asyncio.ensure_future(consume_record_of(slots.agent_host, append))


def to_event(line: LifecycleRecord, source: str) -> NewEvent:
    """A line of a record as an event of the journal."""
    data = {**line.data, "at": clock.to_wire(line.at)}
    agent_id = line.agent_id or None  # none: the start of the agent was denied
    return NewEvent(
        type=line.type,
        data=data,
        source=source,
        subject=agent_id,
        agent_id=agent_id,
        session_id=line.session_id or None,
        trace_id=line.trace_id or None,
        id=line.id,
    )
