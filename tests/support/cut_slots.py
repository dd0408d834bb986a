"""The slots of a box, open in the process of a test, and what a cut of them stages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agentbox.adapters.runtime.adapter import Clock, Deps, SystemClock
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.slots import Slots, create_slots
from agentbox.api.backups.cut import OpenCut
from agentbox.api.backups.parts import trees
from agentbox.api.backups.staging import note_lengths, stage
from agentbox.contracts.backups import Cut
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, SlotPlan
from support.api_box import SLOTS, api_plan


def no_stop() -> None:
    """The work goes on."""


def plan_of_slots() -> Plan:
    return api_plan(slots={**SLOTS, "orchestrator": SlotPlan(use="off", required=False)})


@asynccontextmanager
async def open_slots(prefix: Path, clock: Clock | None = None) -> AsyncIterator[Slots]:
    deps = Deps(metrics=Metrics(), clock=clock or SystemClock())
    slots = create_slots(plan_of_slots(), Paths(prefix), deps)
    await slots.start()
    try:
        yield slots
    finally:
        await slots.stop()


def staged_of(cut: OpenCut, paths: Paths) -> Cut:
    folders = list(trees(paths, cut.plan.backup.include))
    return stage(cut, paths, folders, note_lengths(folders), no_stop)
