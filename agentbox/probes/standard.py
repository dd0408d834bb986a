"""The requirements of a box, in the order of `missing` (box.md 7). Adding a family is adding a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentbox.plan.model import Plan
from agentbox.probes.requirement import Requirement
from agentbox.probes.requirements.adapters import AdaptersRequirement, SlotState
from agentbox.probes.requirements.artifacts import ArtifactsRequirement
from agentbox.probes.requirements.draining import DrainingRequirement
from agentbox.probes.requirements.paths import PathsRequirement
from agentbox.probes.requirements.programs import ProgramsRequirement
from agentbox.probes.requirements.sentinel import SentinelRequirement
from agentbox.settings import Paths
from agentbox.supervision.boot_record import read_boot_record
from agentbox.supervision.hooks import Hooks


@dataclass(frozen=True)
class Standard:
    """The families of this box; `all` is what the evaluator takes."""

    sentinel: SentinelRequirement
    programs: ProgramsRequirement
    adapters: AdaptersRequirement
    paths: PathsRequirement
    artifacts: ArtifactsRequirement
    draining: DrainingRequirement

    @property
    def all(self) -> tuple[Requirement, ...]:
        return (self.sentinel, self.programs, self.adapters, self.paths, self.artifacts, self.draining)


def standard_requirements(
    paths: Paths,
    plan: Plan,
    *,
    boot_id: str,
    slots: Callable[[], Mapping[str, SlotState]],
    recorded_sentinel: Callable[[], str | None],
    on_shutdown: Callable[[], None],
    hooks: Hooks | None = None,
) -> Standard:
    """`plan` is the plan in force; `recorded_sentinel` the hash of `boot.sealed` in the journal, None without one."""
    hooks = hooks or Hooks()
    record = read_boot_record(paths)
    sentinel = SentinelRequirement(paths, boot_id, plan.digest, recorded_sentinel)
    artifacts = ArtifactsRequirement(
        paths,
        plan,
        lambda: sentinel.sealed,
        optional_missing=record.optional_missing if record else (),
        force_missing=hooks.force_missing,
    )
    return Standard(
        sentinel=sentinel,
        programs=ProgramsRequirement(paths, plan),
        adapters=AdaptersRequirement(slots),
        paths=PathsRequirement(paths, plan),
        artifacts=artifacts,
        draining=DrainingRequirement(paths, on_shutdown),
    )
