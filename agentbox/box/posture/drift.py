"""Posture drift: what is promised, and what is found instead. Standard library only."""

from collections.abc import Mapping

from agentbox.box.posture.measured import measured
from agentbox.box.posture.promised import promised
from agentbox.box.supervision.boot_record import Drifted
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan


def posture_drift(plan: Plan, paths: Paths, landlock_abi: int, target: str = "") -> tuple[Drifted, ...]:
    """What is not as promised on that target now. Raises OSError."""
    return compare(promised(plan, paths, target), measured(plan, paths, landlock_abi, target))


def compare(expected: Mapping[str, str], found: Mapping[str, str]) -> tuple[Drifted, ...]:
    """Every control that is not as expected, by name."""
    return tuple(
        Drifted(control, expected[control], found[control])
        for control in sorted(expected)
        if found[control] != expected[control]
    )
