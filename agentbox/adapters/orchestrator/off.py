"""The orchestrator slot, off."""

from agentbox.adapters.runtime.off import Off
from agentbox.contracts.orchestrator import Orchestrator


class OffOrchestrator(Off):
    """Refuses every method of `Orchestrator`."""

    slot = "orchestrator"
    contract = Orchestrator
