"""What serves the operations of the slots, and of what agent-host stores."""

import asyncio
from collections.abc import Mapping
from functools import partial

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.auth.bindings import MEMORY_CHECKS
from agentbox.api.auth.ownership import BeadOwnership
from agentbox.api.background.approver_presence import ApproverPresence
from agentbox.api.endpoints.agents import AgentEndpoints
from agentbox.api.endpoints.approvals import ApprovalEndpoints
from agentbox.api.endpoints.beads import BeadEndpoints
from agentbox.api.endpoints.events import EventEndpoints
from agentbox.api.endpoints.memory import MemoryEndpoints
from agentbox.api.endpoints.pods import PodEndpoints
from agentbox.api.endpoints.reviews import ReviewEndpoints
from agentbox.api.endpoints.states import StateEndpoints
from agentbox.api.http.handler import Group
from agentbox.api.plan_source import PlanSource


def slot_groups(slots: Slots, plans: PlanSource, closing: asyncio.Event) -> Mapping[str, Group]:
    """By the name of the resource's endpoints. `closing` is set when streams must end."""
    ownership, approvers = BeadOwnership(slots.beads), ApproverPresence(slots.agent_host)
    events = EventEndpoints(slots.events, approvers.connect, closing)
    return {
        "beads": Group(BeadEndpoints(slots.beads, ownership), slots.beads, ownership.checks),
        "pods": Group(PodEndpoints(slots.pods, partial(slots.capabilities, "pods"), plans)),
        "memory": Group(MemoryEndpoints(slots.memory), slots.memory, MEMORY_CHECKS),
        "events": Group(events, slots.events),
        "agents": Group(AgentEndpoints(slots.orchestrator, closing), slots.orchestrator),
        "reviews": Group(ReviewEndpoints(slots.agent_host)),
        "approvals": Group(ApprovalEndpoints(slots.agent_host)),
        "states": Group(StateEndpoints(slots, plans)),
    }
