"""The requirements of a box, in the order of `missing`. To add a family, add a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentbox.box.readiness.requirement import Requirement
from agentbox.box.readiness.requirements.adapters import AdaptersRequirement, SlotState
from agentbox.box.readiness.requirements.deep_probes import ArtifactsRequirement
from agentbox.box.readiness.requirements.draining import DrainingRequirement
from agentbox.box.readiness.requirements.paths import PathsRequirement
from agentbox.box.readiness.requirements.programs import ProgramsRequirement
from agentbox.box.readiness.requirements.sandbox import SandboxRequirement
from agentbox.box.readiness.requirements.sentinel import SentinelRequirement
from agentbox.box.supervision.boot_record import read_boot_record
from agentbox.box.supervision.fault_hooks import FaultHooks
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

LOCAL = "local-process"


def proves_sandbox(plan: Plan) -> bool:
    """Whether this box confines agents itself. A child of external-stdio confines its own, here or
    elsewhere, which no canary of this box can check.
    """
    return plan.slots["orchestrator"].use == LOCAL


@dataclass(frozen=True)
class BoxRequirements:
    """The families of this box; `all` is the input of the evaluator."""

    sentinel: SentinelRequirement
    programs: ProgramsRequirement
    adapters: AdaptersRequirement
    paths: PathsRequirement
    sandbox: SandboxRequirement | None  # where agents are processes of this box
    artifacts: ArtifactsRequirement
    draining: DrainingRequirement

    @property
    def all(self) -> tuple[Requirement, ...]:
        sandbox = () if self.sandbox is None else (self.sandbox,)
        return (
            self.sentinel,
            self.programs,
            self.adapters,
            self.paths,
            *sandbox,
            self.artifacts,
            self.draining,
        )


def make_requirements(
    paths: Paths,
    plan: Plan,
    *,
    boot_id: str,
    slots: Callable[[], Mapping[str, SlotState]],
    recorded_sentinel: Callable[[], str | None],
    canaries: Callable[[], CanaryReport | None] | None = None,
    hooks: FaultHooks | None = None,
) -> BoxRequirements:
    """`plan` is the plan in force; `recorded_sentinel` the hash of `boot.sealed` in the journal,
    None without one; `canaries` the last results of agent-host's canaries, where the box confines
    agents.
    """
    hooks = hooks or FaultHooks()
    record = read_boot_record(paths)
    sentinel = SentinelRequirement(paths, boot_id, plan.digest, recorded_sentinel)
    artifacts = ArtifactsRequirement(
        paths,
        plan,
        lambda: sentinel.sealed,
        optional_missing=record.optional_missing if record else (),
        force_missing=hooks.force_missing,
    )
    return BoxRequirements(
        sentinel=sentinel,
        programs=ProgramsRequirement(paths, plan),
        adapters=AdaptersRequirement(slots),
        paths=PathsRequirement(paths, plan),
        sandbox=SandboxRequirement(canaries) if canaries else None,
        artifacts=artifacts,
        draining=DrainingRequirement(paths),
    )
