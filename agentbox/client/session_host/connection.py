"""The connection to the program session-host of this box, authenticated by a token that this end
writes.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from agentbox.client.agent_host.operation_calls import RpcPeer, calls_operations
from agentbox.client.program_connection import ProgramConnection
from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.contracts.operations.sessions import SESSION_HOST
from agentbox.contracts.session_host import CONTRACT_VERSION, SessionHost
from agentbox.core.paths import Paths
from agentbox.core.rpc.client import Subscription
from agentbox.core.rpc.tokens import write_token
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.plan.names import SESSION_HOST as PEER

_SLOT = "sessions"


class SessionHostConnection(ProgramConnection):
    """Waits for session-host, which may be starting."""

    def __init__(self, paths: Paths) -> None:
        super().__init__(
            PEER,
            paths.session_host_socket,
            cache(lambda: write_token(paths.api_token(PEER))),
            CONTRACT_VERSION,
            slot=_SLOT,
            waits=True,
        )


class NoSessionHost:
    """The peer where no agent speaks ACP: session-host does not run."""

    peer, impl = PEER, PEER
    capabilities: frozenset[str] = frozenset()
    grace_s = 0.0

    async def call(
        self, _method: RpcMethod, _params: Mapping[str, Any], _seconds: float | None
    ) -> Any:
        raise _no_agent()

    async def subscribe(self, _method: RpcMethod, _params: Mapping[str, Any]) -> Subscription:
        raise _no_agent()


@calls_operations(SESSION_HOST, lambda client: client.peer)
class _SessionHostClient:
    def __init__(self, peer: RpcPeer) -> None:
        self.peer = peer


def session_host_client(peer: RpcPeer) -> SessionHost:
    """The operations of session-host, as calls of that peer."""
    return cast(SessionHost, _SessionHostClient(peer))


def _no_agent() -> SlotUnavailable:
    return SlotUnavailable(
        "cannot use sessions: no agent of this box speaks ACP",
        hint='set protocol = "acp" in a table [agents.<name>] and build the box again',
        slot=_SLOT,
        impl=PEER,
        since=None,
    )
