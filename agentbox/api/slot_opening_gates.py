"""What a slot waits for before it opens."""

from collections.abc import Awaitable, Callable

from agentbox.adapters.runtime.adapter import SlotName

Gate = Callable[[SlotName], Awaitable[None]]


class SlotOpeningGates:
    """Called for each slot that opens. A gate waits, or raises SlotUnavailable."""

    def __init__(self, *gates: Gate) -> None:
        self._gates = [*gates]

    def add(self, gate: Gate) -> None:
        """Adds a gate, which is passed last."""
        self._gates.append(gate)

    async def __call__(self, slot: SlotName) -> None:
        for gate in self._gates:
            await gate(slot)
