"""Programs of the control plane, one row each. Used by supervisord.conf, seal, probes and drain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentbox.core.paths import Paths
from agentbox.plan.errors import PlanError
from agentbox.plan.model import Program, ReadySignal, SlotPlan
from agentbox.plan.names import (
    AGENT_HOST,
    API,
    BOOTSTRAP,
    GATEWAY,
    ONCE_GROUP,
    SEAL,
    STAGE_B,
    STAGE_VARIABLE,
)

FEATURE_PRIORITIES = range(50, 90)
# supervisord stops its groups one after another, and needs up to one tick of its loop for each
TICK_SECONDS = 1

_BOX = Paths()


@dataclass(frozen=True)
class ProgramRow:
    """A program, and whether this box runs it, decided from the resolved slots."""

    program: Program
    is_enabled: Callable[[Mapping[str, SlotPlan]], bool]


def _always(_slots: Mapping[str, SlotPlan]) -> bool:
    return True


def _spawns_locally(slots: Mapping[str, SlotPlan]) -> bool:
    return slots["orchestrator"].use == "local-process"


def _module(name: str) -> tuple[str, ...]:
    return (str(_BOX.python), "-I", "-m", name)


_NOTIFY = ReadySignal(by="notify")

ROWS: tuple[ProgramRow, ...] = (
    ProgramRow(
        Program(
            name=BOOTSTRAP,
            priority=5,
            argv=_module("agentbox.box.boot"),
            env={STAGE_VARIABLE: STAGE_B},
            required=True,
            ready=ReadySignal(by="exit0"),
            stop_seconds=1,
            group=ONCE_GROUP,
            once=True,
        ),
        _always,
    ),
    ProgramRow(
        Program(
            name=API,
            priority=10,
            argv=_module("agentbox.api"),
            required=True,
            ready=_NOTIFY,
            stop_seconds=11,
        ),
        _always,
    ),
    ProgramRow(
        Program(
            name=GATEWAY,
            priority=20,
            argv=_module("agentbox.gateway"),
            required=True,
            ready=_NOTIFY,
            stop_seconds=2,
        ),
        _spawns_locally,
    ),
    ProgramRow(
        Program(
            name=AGENT_HOST,
            priority=30,
            argv=_module("agentbox.agents"),
            required=True,
            ready=_NOTIFY,
            stop_seconds=8,
        ),
        _spawns_locally,
    ),
    ProgramRow(
        Program(
            name=SEAL,
            priority=99,
            argv=_module("agentbox.box.seal.main"),
            required=False,
            ready=ReadySignal(by="exit0"),
            stop_seconds=1,
            group=ONCE_GROUP,
            once=True,
        ),
        _always,
    ),
)


def control_plane_programs(slots: Mapping[str, SlotPlan]) -> tuple[Program, ...]:
    """The enabled programs, by priority."""
    return tuple(row.program for row in ROWS if row.is_enabled(slots))


def stop_budget(programs: tuple[Program, ...]) -> int:
    """Seconds that supervisord may need to stop all: the slowest of each group, and one tick per
    group.
    """
    slowest: dict[str, int] = {}
    for program in programs:
        group = program.group or program.name
        slowest[group] = max(slowest.get(group, 0), program.stop_seconds)
    return sum(slowest.values()) + TICK_SECONDS * len(slowest)


def check_stop_budget(programs: tuple[Program, ...], stop_seconds: int) -> None:
    """Raises PlanError if the engine would kill the box before supervisord has stopped all
    programs.
    """
    required_seconds = stop_budget(programs)
    if required_seconds > stop_seconds:
        raise PlanError(
            f"cannot plan the shutdown: its programs may take {required_seconds} s to stop, "
            f"and resources.stop_seconds allows {stop_seconds}",
            f"set resources.stop_seconds to {required_seconds} or more",
        )


def check_names(programs: tuple[Program, ...]) -> None:
    """Raises PlanError for a duplicate name or a relative `argv[0]`."""
    seen: set[str] = set()
    for program in programs:
        if program.name in seen:
            raise PlanError(
                f"cannot plan program {program.name}: two features define it", "rename one of them"
            )
        if not program.argv or not program.argv[0].startswith("/"):
            raise PlanError(
                f"cannot plan program {program.name}: argv[0] must be an absolute path",
                "spell it out",
            )
        seen.add(program.name)
