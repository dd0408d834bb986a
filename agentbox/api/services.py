"""What the endpoints work with; put together once, in `app.py`."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentbox.api.auth.access import Access
from agentbox.api.auth.agent_rates import AgentRates
from agentbox.api.auth.rates import Rates
from agentbox.api.auth.tokens import NamedTokens
from agentbox.api.background.drain import Drain
from agentbox.api.background.following import Followers
from agentbox.api.boot_facts import BootFacts
from agentbox.api.mesh.membership import Membership
from agentbox.api.metrics.box_metrics import BoxMetrics
from agentbox.api.metrics.http_metrics import HttpMetrics
from agentbox.api.tasks.runner import Tasks
from agentbox.box.supervision.events import BootLog
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from agentbox.adapters.runtime.slots import Container
    from agentbox.api.background.drift import DriftWatch
    from agentbox.api.background.watch import Watch
    from agentbox.box.readiness.evaluator import Evaluator
    from agentbox.box.readiness.standard import Standard
    from agentbox.mesh.outbox.outbox import Outbox


@dataclass(kw_only=True)
class Services:
    """The parts of a running API. `plan` changes when live keys are applied; `closing` is set when streams must end."""

    plan: Plan
    paths: Paths
    boot: BootFacts
    access: Access
    registry: "CollectorRegistry"
    http: HttpMetrics
    metrics: BoxMetrics
    container: "Container"
    tasks: Tasks
    tokens: NamedTokens
    mesh: Membership
    outbox: "Outbox | None" = None
    standard: "Standard" = field(init=False)
    evaluator: "Evaluator" = field(init=False)
    watch: "Watch" = field(init=False)
    drift: "DriftWatch" = field(init=False)
    drain: Drain = field(init=False)
    followers: Followers = field(init=False)
    rates: Rates = field(default_factory=Rates)
    agent_rates: AgentRates = field(default_factory=AgentRates)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.drain = Drain(self)
        self.followers = Followers(self)

    @property
    def uptime(self) -> float:
        """Seconds since this process began to serve, to the millisecond."""
        return round(time.monotonic() - self.started, 3)

    def say(self, event: str, **fields: Any) -> None:
        """One event of the boot's table, on stdout and in `events.jsonl`."""
        BootLog(self.paths, self.boot.boot_id, self.boot.plan_digest, self.boot.image_ref).emit(event, **fields)
