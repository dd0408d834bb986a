"""The memory slot, off."""

from agentbox.adapters.runtime.off import Off
from agentbox.contracts.memory import Memory


class OffMemory(Off):
    """Refuses every method of `Memory`."""

    slot = "memory"
    contract = Memory
