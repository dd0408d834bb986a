"""The parts of a running API that its endpoints and its background work use."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentbox.api.auth.access import Authenticator
from agentbox.api.auth.agent_rates import AgentWriteLimiter
from agentbox.api.auth.rates import RequestLimiter
from agentbox.api.auth.tokens import TokenStore
from agentbox.api.boot_facts import BootFacts
from agentbox.api.http.livez import Uptime
from agentbox.api.mesh.mesh_role import MeshRole
from agentbox.api.metrics.box_metrics import BoxMetrics
from agentbox.api.metrics.http_metrics import HttpMetrics
from agentbox.api.plan_source import PlanSource
from agentbox.api.tasks.runner import TaskRunner
from agentbox.box.supervision.events import BootLog
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from agentbox.adapters.runtime.slots import Slots
    from agentbox.box.readiness.box_requirements import BoxRequirements
    from agentbox.box.readiness.evaluator import Evaluator
    from agentbox.mesh.outbox.outbox import Outbox


@dataclass(kw_only=True)
class ApiParts:
    """`closing` is set when streams must end,
    `ready_once` when the box is ready for the first time.
    """

    plans: PlanSource
    paths: Paths
    boot: BootFacts
    authenticator: Authenticator
    registry: "CollectorRegistry"
    http: HttpMetrics
    metrics: BoxMetrics
    slots: "Slots"
    tasks: TaskRunner
    tokens: TokenStore
    mesh: MeshRole
    outbox: "Outbox | None" = None
    requirements: "BoxRequirements" = field(init=False)
    evaluator: "Evaluator" = field(init=False)
    rates: RequestLimiter = field(default_factory=RequestLimiter)
    agent_rates: AgentWriteLimiter = field(default_factory=AgentWriteLimiter)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    ready_once: asyncio.Event = field(default_factory=asyncio.Event)
    uptime: Uptime = field(default_factory=Uptime)

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self.plans.current

    def emit_event(self, event: str, **fields: Any) -> None:
        """Emits one boot event, on stdout and in `events.jsonl`."""
        BootLog(self.paths, self.boot.boot_id, self.boot.plan_digest, self.boot.image_ref).emit(
            event, **fields
        )
