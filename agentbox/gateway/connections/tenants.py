"""Whose connections are open: a stranger's gives way to a newer one, an agent's to one of its own, nobody's to another's."""

from typing import Any, Final

from agentbox.core.http.connection import BoundedHttp
from agentbox.gateway.authorizer import Authority, Refused

STRANGERS: Final = 128  # connections on which no token was sent yet that holds
KEPT: Final = 64  # connections of one agent
_KEYS: Final = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")  # where clients of providers put theirs


class Tenants:
    """Those of one listener."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self._strangers: dict[TenantHttp, None] = {}
        self._of: dict[str, dict[TenantHttp, None]] = {}

    def enter(self, connection: "TenantHttp") -> None:
        """A new one; the oldest of too many strangers goes."""
        self._strangers[connection] = None
        if len(self._strangers) > STRANGERS:
            next(iter(self._strangers)).cut()

    def known(self, connection: "TenantHttp", headers: list[tuple[bytes, bytes]]) -> None:
        """A request came; if it says whose the connection is, that agent's oldest quiet one goes when it has too many."""
        agent_id = self._owner(headers)
        if not agent_id or connection not in self._strangers:
            return
        del self._strangers[connection]
        connection.agent_id = agent_id
        own = self._of.setdefault(agent_id, {})
        own[connection] = None
        if len(own) > KEPT:
            next((one for one in own if one.quiet), connection).cut()

    def leave(self, connection: "TenantHttp") -> None:
        """It is closed, or another protocol has it. Idempotent."""
        self._strangers.pop(connection, None)
        own = self._of.get(connection.agent_id, {})
        own.pop(connection, None)
        if not own:
            self._of.pop(connection.agent_id, None)

    def _owner(self, headers: list[tuple[bytes, bytes]]) -> str:
        for name, value in headers:
            if name in _KEYS:
                try:
                    return self._authority.identify(value.decode("latin-1").rpartition(" ")[2]).agent_id
                except Refused:
                    continue
        return ""


class TenantHttp(BoundedHttp):
    """One connection of a tenant."""

    tenants: Tenants
    agent_id = ""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.tenants.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.tenants.leave(self)
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        self.tenants.known(self, self.headers)
        super().on_headers_complete()

    def handle_websocket_upgrade(self) -> None:
        self.tenants.leave(self)
        super().handle_websocket_upgrade()

    @property
    def quiet(self) -> bool:
        """No request is being answered."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def cut(self) -> None:
        """At once."""
        self.tenants.leave(self)
        self.transport.abort()
