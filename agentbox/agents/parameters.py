"""Parameters that several RPC methods have."""

from agentbox.contracts.orchestrator import AgentHandle
from agentbox.core.records.wire import from_wire
from agentbox.core.rpc.session import Params


def read_handle(params: Params) -> AgentHandle:
    """The agent that a call is about. Raises KeyError, ValidationError."""
    return AgentHandle(
        agent_id=from_wire(str, params["agent_id"]), generation=from_wire(int, params["generation"])
    )
