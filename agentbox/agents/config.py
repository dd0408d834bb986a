"""Configuration of agent-host, from the plan."""

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Self

from agentbox.agents.admission.services import server_policies
from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths, environment
from agentbox.core.records.plain import build, to_plain
from agentbox.core.rpc.messages import LIVE_LIMITS
from agentbox.core.storage.store_record import StoreRecord
from agentbox.manifest.slot_options import ProcessOptions
from agentbox.plan.model import Plan
from agentbox.plan.network import gateway_port, loopback_targets
from agentbox.plan.skill_catalogue import SkillCatalogue
from agentbox.plan.slots import slot_options
from agentbox.plan.tables import (
    AcpPlan,
    AgentPlan,
    LimitsPlan,
    McpServerPlan,
    PolicyPlan,
    ProviderPlan,
    SandboxesPlan,
)
from agentbox.policy.limits.reserve import agent_memory, agent_tasks

_RESERVED_PREFIX = "AGENTBOX_"  # prefix of variables reserved for the control plane
SCALE_HOOK = "AGENTBOX_TEST_CLOCK_SCALE"


@frozen
class HostConfig:
    """Limits of this host. `limits` are the default and maximum of every agent. What comes from the
    manifest has its default there.
    """

    paths: Paths
    skills: SkillCatalogue
    limits: LimitsPlan
    feature_env: Mapping[str, str]  # of the features, never a credential
    agents: Mapping[str, AgentPlan]
    policies: Mapping[str, PolicyPlan]
    providers: Mapping[str, ProviderPlan]
    sandboxes: SandboxesPlan
    acp: AcpPlan
    egress_allow: tuple[str, ...]  # patterns of `egress.allow`, the maximum of every agent
    gateway_port: int  # on 127.0.0.1
    programs: tuple[str, ...]  # of this box
    max_agents: int
    max_depth: int
    grace_seconds: float
    log_level: str
    dev: bool
    box_tasks: int  # processes and threads of all agents together; 0 = unlimited
    box_memory: int  # bytes of all agents together; 0 = unlimited
    closed_ports: tuple[int, ...]  # of the box: agents may neither bind nor connect to them
    target_ports: tuple[int, ...]  # of loopback services in the manifest, likewise
    writable_dirs: tuple[str, ...]  # anybody in the box may write there
    clock_scale: float = 1  # divides the delays before restarts; a test hook
    test_hooks: bool = False
    keep_ended: int = 200  # agents that have ended, with their output
    keep_output: int = 256 << 20  # bytes of output of agents that have ended
    keep_specs: int = (
        16 << 20
    )  # characters of their specs, each of which may be as long as a request
    mcp_servers: Mapping[str, McpServerPlan] = field(default_factory=dict)
    directory: str = "orchestrator"  # below the state of the box

    @property
    def state_dir(self) -> Path:
        """Directory of the rows and output of this host's agents."""
        return self.paths.slot(self.directory)

    @property
    def store_record(self) -> StoreRecord:
        """Record of the last content of this host's database."""
        return StoreRecord(self.paths.slot("stores") / f"{self.directory}.json")

    def with_bounds(self, bounds: Mapping[str, Any]) -> Self:
        """Replace limits for agents started from now on: BOUNDS, and `limits` by name. Others are
        kept."""
        overrides = {name: bounds[name] for name in LIVE_LIMITS if name in bounds}
        limits, changed_limits = to_plain(self.limits), bounds.get("limits", {})
        limits |= {name: changed_limits[name] for name in limits if name in changed_limits}
        return replace(self, limits=build(LimitsPlan, limits, "limits"), **overrides)

    @classmethod
    def from_plan(cls, plan: Plan, paths: Paths) -> Self:
        """Test hooks need a plan that allows them."""
        options = ProcessOptions.of(slot_options(plan.slots, "orchestrator"))
        scale = float(environment().get(SCALE_HOOK, "1")) if plan.test_hooks else 1.0
        level = plan.observability.log_level
        feature_env = {
            name: value
            for name, value in plan.environment.items()
            if not name.startswith(_RESERVED_PREFIX)
        }
        return cls(
            paths=paths,
            skills=SkillCatalogue(paths),
            limits=plan.limits,
            feature_env=feature_env,
            log_level=level,
            dev=plan.dev,
            clock_scale=scale,
            test_hooks=plan.test_hooks,
            agents=plan.agents,
            mcp_servers=plan.mcp.servers,
            policies={**plan.policies, **server_policies(plan.mcp.servers)},
            providers=plan.providers,
            sandboxes=plan.sandboxes,
            acp=plan.acp,
            egress_allow=plan.reach.allow,
            gateway_port=gateway_port(plan, in_container=paths.is_container),
            closed_ports=_closed_ports(plan),
            target_ports=loopback_targets(plan),
            box_tasks=agent_tasks(plan.resources.pids),
            box_memory=agent_memory(plan.resources.memory, sum(mount.size for mount in plan.tmpfs)),
            writable_dirs=plan.writable_roots,
            programs=tuple(program.name for program in plan.programs),
            max_agents=options.max_agents,
            max_depth=options.max_depth,
            grace_seconds=options.grace_seconds,
        )


def _closed_ports(plan: Plan) -> tuple[int, ...]:
    return tuple(
        sorted(
            {
                plan.api.port,
                plan.observability.metrics_port,
                *(mapping.port for mapping in plan.ports),
            }
        )
    )
