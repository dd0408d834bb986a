"""What serves the operations of each resource."""

from collections.abc import Mapping
from functools import partial

from agentbox.api.auth.bindings import MEMORY_CHECKS
from agentbox.api.auth.ownership import BeadOwnership
from agentbox.api.background.apply import ManifestApplier
from agentbox.api.background.approver_presence import agent_host
from agentbox.api.endpoints.agents import AgentEndpoints
from agentbox.api.endpoints.approvals import ApprovalEndpoints
from agentbox.api.endpoints.beads import BeadEndpoints
from agentbox.api.endpoints.box import BoxEndpoints
from agentbox.api.endpoints.events import EventEndpoints
from agentbox.api.endpoints.health import HealthReport
from agentbox.api.endpoints.memory import MemoryEndpoints
from agentbox.api.endpoints.mesh import MeshEndpoints
from agentbox.api.endpoints.meta import MetaReport
from agentbox.api.endpoints.pages import PageEndpoints
from agentbox.api.endpoints.pods import PodEndpoints
from agentbox.api.endpoints.probes import ProbeEndpoints
from agentbox.api.endpoints.reviews import ReviewEndpoints
from agentbox.api.endpoints.states import StateEndpoints
from agentbox.api.endpoints.tasks import TaskEndpoints
from agentbox.api.endpoints.tokens import TokenEndpoints
from agentbox.api.http.handler import Group
from agentbox.api.services import Services


def make_groups(services: Services) -> Mapping[str, Group]:
    """The groups by the name that the operation table gives them."""
    slots, plans, closing = services.slots, services.plans, services.closing
    host, ownership = partial(agent_host, slots), BeadOwnership(slots.beads)
    health = HealthReport(
        services.uptime,
        services.boot,
        services.evaluator,
        services.requirements,
        slots,
        services.mesh,
        services.drift,
        services.drain,
        services.ready_once,
        dev=plans.current.dev,
    )
    meta = MetaReport(plans, services.boot, slots, services.background)
    probes = ProbeEndpoints(
        services.uptime, services.boot, services.evaluator, health, meta, services.registry
    )
    applier = ManifestApplier(services.paths, plans, slots, services.mesh.overlay)
    return {
        "probes": Group(probes),
        "box": Group(BoxEndpoints(services.paths, services.drain, applier)),
        "pages": Group(PageEndpoints()),
        "beads": Group(BeadEndpoints(slots.beads, ownership), slots.beads, ownership.checks),
        "pods": Group(PodEndpoints(slots.pods, partial(slots.capabilities, "pods"), plans)),
        "memory": Group(MemoryEndpoints(slots.memory), slots.memory, MEMORY_CHECKS),
        "events": Group(
            EventEndpoints(slots.events, services.approvers.connect, closing), slots.events
        ),
        "agents": Group(AgentEndpoints(slots.orchestrator, closing), slots.orchestrator),
        "tasks": Group(TaskEndpoints(services.tasks, closing)),
        "reviews": Group(ReviewEndpoints(host)),
        "approvals": Group(ApprovalEndpoints(host)),
        "states": Group(StateEndpoints(slots, plans)),
        "tokens": Group(TokenEndpoints(services.tokens, slots.journal)),
        "mesh": Group(MeshEndpoints(services.mesh, services.outbox)),
    }
