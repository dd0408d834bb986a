"""`adapter:<slot> not healthy (status=down)`: each required slot works. Failing optional slots are
reported as degraded.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from agentbox.box.readiness.requirement import Requirement

_WORKS = ("ok", "off", "degraded")


class SlotState(Protocol):
    """The part of a slot's status that readiness reads."""

    @property
    def state(self) -> str: ...
    @property
    def required(self) -> bool: ...


class AdaptersRequirement(Requirement):
    """`status` returns the last results of the slots' health checks; it must not block."""

    family = "adapters"
    title = "adapters:healthy"
    period = 1.0

    def __init__(self, status: Callable[[], Mapping[str, SlotState]]) -> None:
        self._status = status
        self._degraded: tuple[str, ...] = ()

    async def check(self) -> tuple[str, ...]:
        statuses = self._status()
        self._degraded = tuple(
            sorted(name for name, slot in statuses.items() if _is_degraded(slot))
        )
        return tuple(
            f"adapter:{name} not healthy (status={statuses[name].state})"
            for name in sorted(statuses)
            if statuses[name].required and statuses[name].state not in _WORKS
        )

    def missing_on_timeout(self) -> tuple[str, ...]:
        return ("adapter:all not healthy (status=unknown)",)

    def degraded(self) -> tuple[str, ...]:
        return self._degraded


def _is_degraded(slot: SlotState) -> bool:
    return slot.state == "degraded" or (not slot.required and slot.state not in ("ok", "off"))
