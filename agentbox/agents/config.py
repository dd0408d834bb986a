"""What agent-host takes from the plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from agentbox.core.paths import Paths, environment
from agentbox.core.rpc.messages import BOUNDS
from agentbox.core.storage.store_record import StoreRecord
from agentbox.manifest.gateway_port import GATEWAY_PORT
from agentbox.plan.model import Plan
from agentbox.plan.network import gateway_port, targets_on_loopback
from agentbox.policy.limits.reserve import memory_of_agents, tasks_of_agents

_OURS = "AGENTBOX_"  # what of the box's environment is for the control plane
SCALE_HOOK = "AGENTBOX_TEST_CLOCK_SCALE"


@dataclass(frozen=True, kw_only=True)
class HostConfig:
    """Bounds of this host. `limits` are the defaults, and the ceiling, of every agent: keys of `[limits]`."""

    paths: Paths
    limits: Mapping[str, Any]
    feature_env: Mapping[str, str] = field(default_factory=dict)  # of the features, never a credential
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # [agents.<name>]
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # [policies.<name>] as written
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # [providers.<name>]
    reach: Mapping[str, Any] = field(default_factory=dict)  # [egress]
    gateway_port: int = GATEWAY_PORT  # on 127.0.0.1
    max_agents: int = 100
    max_depth: int = 5
    grace_seconds: float = 5
    log_level: str = "info"
    dev: bool = False
    clock_scale: float = 1  # waits before a restart are divided by it; a test hook
    test_hooks: bool = False
    keep_ended: int = 200  # agents that ended, with their output
    keep_output: int = 256 << 20  # bytes of output of agents that ended
    keep_specs: int = 16 << 20  # characters of their specs: one may be as long as a request
    folder: str = "orchestrator"  # below the state of the box
    box_tasks: int = 0  # processes and threads of all agents together; 0 = any number
    box_memory: int = 0  # bytes of all agents together; 0 = any number
    closed_ports: tuple[int, ...] = ()  # the box's own: no agent takes or reaches one
    target_ports: tuple[int, ...] = ()  # of services on loopback that the manifest names: neither
    written: tuple[str, ...] = ()  # folders where anybody in the box may write, as the plan names them

    @property
    def state(self) -> Path:
        """Where rows and output of this host's agents are kept."""
        return self.paths.slot(self.folder)

    @property
    def record(self) -> StoreRecord:
        """What the database of this host's agents held last."""
        return StoreRecord(self.paths.slot("stores") / f"{self.folder}.json")

    def bounded_by(self, bounds: Mapping[str, Any]) -> Self:
        """These bounds instead, for what is started from now on: BOUNDS, and `limits` by name. The rest stays."""
        known = {name: bounds[name] for name in BOUNDS if name in bounds}
        return replace(self, limits={**self.limits, **bounds.get("limits", {})}, **known)

    @classmethod
    def from_plan(cls, plan: Plan, paths: Paths) -> Self:
        """Options that the plan leaves out keep their defaults. The test hook works only in a plan that allows hooks."""
        options = plan.slots["orchestrator"].options
        known = {name: options[name] for name in BOUNDS if name in options}
        scale = float(environment().get(SCALE_HOOK, "1")) if plan.test_hooks else 1.0
        level = plan.observability.log_level
        of_features = {name: value for name, value in plan.environment.items() if not name.startswith(_OURS)}
        return cls(
            paths=paths, limits=plan.limits, feature_env=of_features, log_level=level, dev=plan.dev, clock_scale=scale, test_hooks=plan.test_hooks,
            agents=plan.agents, policies=plan.policies, providers=plan.providers, reach=plan.reach,
            gateway_port=gateway_port(plan, contained=paths.contained), closed_ports=_closed(plan), target_ports=targets_on_loopback(plan),
            box_tasks=tasks_of_agents(plan.resources.pids),
            box_memory=memory_of_agents(plan.resources.memory, sum(one.size for one in plan.tmpfs)),
            written=plan.writable_roots, **known,
        )  # fmt: skip


def _closed(plan: Plan) -> tuple[int, ...]:
    return tuple(sorted({plan.api.port, plan.observability.metrics_port, *(one.port for one in plan.ports)}))
