"""The memory slot, off."""

from agentbox.adapters.memory.contract import Memory
from agentbox.adapters.off import Off


class OffMemory(Off):
    """Refuses every method of `Memory`."""

    slot = "memory"
    contract = Memory
