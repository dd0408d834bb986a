"""Connection quotas: an unauthenticated connection is replaced by a newer one, an agent's by
another of the same agent."""

from typing import Any, Final

from agentbox.core.http.connection import BoundedHttp
from agentbox.gateway.authorizer import AccessDenied, Authorizer

MAX_UNAUTHENTICATED: Final = 128  # connections that have not sent a valid token
MAX_PER_AGENT: Final = 64
_TOKEN_HEADERS: Final = (
    b"authorization",
    b"x-api-key",
    b"x-goog-api-key",
    b"api-key",
)  # headers in which SDKs of providers send keys


class ConnectionQuota:
    """Connection quotas of one listener."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._unauthenticated: dict[AgentConnection, None] = {}
        self._by_agent: dict[str, dict[AgentConnection, None]] = {}

    def connect(self, connection: "AgentConnection") -> None:
        """Adds a connection; aborts the oldest unauthenticated one above the limit."""
        self._unauthenticated[connection] = None
        if len(self._unauthenticated) > MAX_UNAUTHENTICATED:
            next(iter(self._unauthenticated)).abort()

    def authenticate(
        self, connection: "AgentConnection", headers: list[tuple[bytes, bytes]]
    ) -> None:
        """Assigns a connection to the agent of its token; aborts the agent's oldest idle one above
        the limit."""
        agent_id = self._find_agent_id(headers)
        if not agent_id or connection not in self._unauthenticated:
            return
        del self._unauthenticated[connection]
        connection.agent_id = agent_id
        agent_connections = self._by_agent.setdefault(agent_id, {})
        agent_connections[connection] = None
        if len(agent_connections) > MAX_PER_AGENT:
            next(
                (candidate for candidate in agent_connections if candidate.is_idle), connection
            ).abort()

    def disconnect(self, connection: "AgentConnection") -> None:
        """Removes a connection that was closed or upgraded. Idempotent."""
        self._unauthenticated.pop(connection, None)
        agent_connections = self._by_agent.get(connection.agent_id, {})
        agent_connections.pop(connection, None)
        if not agent_connections:
            self._by_agent.pop(connection.agent_id, None)

    def _find_agent_id(self, headers: list[tuple[bytes, bytes]]) -> str:
        for name, value in headers:
            if name in _TOKEN_HEADERS:
                try:
                    return self._authorizer.identify(
                        value.decode("latin-1").rpartition(" ")[2]
                    ).agent_id
                except AccessDenied:
                    continue
        return ""


class AgentConnection(BoundedHttp):
    """A connection counted by a ConnectionQuota."""

    quota: ConnectionQuota
    agent_id = ""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.quota.connect(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.quota.disconnect(self)
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        self.quota.authenticate(self, self.headers)
        super().on_headers_complete()

    def handle_websocket_upgrade(self) -> None:
        self.quota.disconnect(self)
        super().handle_websocket_upgrade()

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def abort(self) -> None:
        """Closes the connection immediately."""
        self.quota.disconnect(self)
        self.transport.abort()
