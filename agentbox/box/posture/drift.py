"""Posture drift: the promised controls compared with the measured ones. Standard library only."""

from collections.abc import Mapping

from agentbox.box.posture.measured import measured_controls
from agentbox.box.posture.promised import promised_controls
from agentbox.box.supervision.boot_record import PostureDrift
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan


def posture_drift(
    plan: Plan, paths: Paths, landlock_abi: int, target: str = ""
) -> tuple[PostureDrift, ...]:
    """The controls that differ from the plan on that target now. Raises OSError."""
    return compare(
        promised_controls(plan, paths, target), measured_controls(plan, paths, landlock_abi, target)
    )


def compare(expected: Mapping[str, str], actual: Mapping[str, str]) -> tuple[PostureDrift, ...]:
    """All controls that differ, sorted by name."""
    return tuple(
        PostureDrift(control, expected[control], actual[control])
        for control in sorted(expected)
        if actual[control] != expected[control]
    )
