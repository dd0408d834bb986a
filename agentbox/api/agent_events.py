"""What became of agents, from agent-host's own ordered record into the journal, each line once (slots.md O15)."""

import asyncio
from typing import TYPE_CHECKING

from agentbox import clock
from agentbox.adapters.events.contract import NewEvent
from agentbox.adapters.orchestrator.record import RecordLine, follow_record

if TYPE_CHECKING:
    from agentbox.api.services import Services

LOCAL = "local-process"


def record_of_agents(services: "Services") -> "asyncio.Task[None] | None":
    """The task that brings it in; None where agents are not ours, or nothing is journalled: agent-host keeps it then."""
    slots = services.plan.slots
    if slots["orchestrator"].use != LOCAL or slots["events"].use == "off":
        return None
    source = f"urn:agentbox:box:{services.plan.name}"

    async def take(lines: tuple[RecordLine, ...]) -> None:
        await services.container.events.append([_event(line, source) for line in lines])

    return asyncio.ensure_future(follow_record(services.paths, take))


def _event(line: RecordLine, source: str) -> NewEvent:
    data = {**line.data, "at": clock.to_wire(line.at)}
    return NewEvent(type=line.type, data=data, source=source, subject=line.agent_id, agent_id=line.agent_id, id=line.id)
