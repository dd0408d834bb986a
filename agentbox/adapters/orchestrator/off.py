"""The orchestrator slot, off."""

from agentbox.adapters.off import Off
from agentbox.adapters.orchestrator.contract import Orchestrator


class OffOrchestrator(Off):
    """Refuses every method of `Orchestrator`."""

    slot = "orchestrator"
    contract = Orchestrator
