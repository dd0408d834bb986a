"""The peer of `AgentHost` where there is none: the slot is off or down."""

from collections.abc import Mapping
from typing import Any

from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.core.rpc.client import Subscription
from agentbox.core.slot_errors import SlotUnavailable

_SERVICES = {
    "": "services of agent-host",
    "denials": "denials of agents",
    "record": "records of agents",
    "review": "reviews and approvals",
    "sandboxes": "sandboxes",
}


def unavailable(capability: str, impl: str) -> SlotUnavailable:
    """The error of an operation that needs a capability which the peer lacks."""
    services = _SERVICES[capability]
    return SlotUnavailable(
        f"cannot use {services}: this orchestrator does not provide them",
        slot="orchestrator",
        impl=impl,
        since=None,
    )


class UnavailablePeer:
    """Without capabilities, and without an answer to what needs none."""

    peer = "agent-host"
    impl: str
    capabilities: frozenset[str] = frozenset()
    grace_s = 0.0

    async def call(
        self, _method: RpcMethod, _params: Mapping[str, Any], _seconds: float | None
    ) -> Any:
        raise unavailable("", self.impl)

    async def subscribe(self, _method: RpcMethod, _params: Mapping[str, Any]) -> Subscription:
        raise unavailable("", self.impl)
