"""What serves the operations of the slots, and of what agent-host stores."""

import asyncio
from collections.abc import Mapping
from functools import partial

from agentbox.adapters.events.search.index import EventIndex
from agentbox.adapters.runtime.slots import Slots
from agentbox.api.auth.bindings import MEMORY_CHECKS
from agentbox.api.auth.ownership import BeadOwnership
from agentbox.api.background.approver_presence import ApproverPresence
from agentbox.api.endpoints.agents import AgentHandlers
from agentbox.api.endpoints.approvals import ApprovalHandlers
from agentbox.api.endpoints.beads import BeadHandlers
from agentbox.api.endpoints.events import EventHandlers
from agentbox.api.endpoints.memory import MemoryHandlers
from agentbox.api.endpoints.pods import PodHandlers
from agentbox.api.endpoints.reviews import ReviewHandlers
from agentbox.api.endpoints.sandbox_files import SandboxFileHandlers
from agentbox.api.endpoints.sandboxes import SandboxHandlers
from agentbox.api.endpoints.states import StateHandlers
from agentbox.api.http.handler import EndpointGroup
from agentbox.api.model_usage import ModelUsageReader
from agentbox.api.plan_source import PlanSource


def slot_groups(
    slots: Slots,
    plans: PlanSource,
    models: ModelUsageReader,
    index: EventIndex,
    closing: asyncio.Event,
) -> Mapping[str, EndpointGroup]:
    """By the name of the resource's endpoints. `closing` is set when streams must end."""
    ownership, approvers = BeadOwnership(slots.beads), ApproverPresence(slots.agent_host)
    events = EventHandlers(slots.events, index, approvers.connect, closing)
    return {
        "beads": EndpointGroup(BeadHandlers(slots.beads, ownership), slots.beads, ownership.checks),
        "pods": EndpointGroup(PodHandlers(slots.pods, partial(slots.capabilities, "pods"), plans)),
        "memory": EndpointGroup(MemoryHandlers(slots.memory), slots.memory, MEMORY_CHECKS),
        "events": EndpointGroup(events, slots.events),
        "agents": EndpointGroup(AgentHandlers(slots.orchestrator, closing), slots.orchestrator),
        "reviews": EndpointGroup(ReviewHandlers(slots.agent_host, models)),
        "approvals": EndpointGroup(ApprovalHandlers(slots.agent_host)),
        "sandboxes": EndpointGroup(SandboxHandlers(slots.agent_host, closing)),
        "sandbox_files": EndpointGroup(SandboxFileHandlers(slots.agent_host, plans)),
        "states": EndpointGroup(StateHandlers(slots, plans)),
    }
