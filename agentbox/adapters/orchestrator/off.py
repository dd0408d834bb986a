"""The orchestrator slot, off."""

from agentbox.adapters.runtime.off import Off
from agentbox.client.agent_host.unavailable import UnavailablePeer
from agentbox.contracts.orchestrator import Orchestrator


class OffOrchestrator(Off, UnavailablePeer):
    """Refuses every method of `Orchestrator`, and of `AgentHost`."""

    slot = "orchestrator"
    contract = Orchestrator
