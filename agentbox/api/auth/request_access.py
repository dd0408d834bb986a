"""Who may make a request: address, caller, rate, scope, and the type that the caller accepts."""

from collections.abc import Mapping

from agentbox.api.auth.agent_rates import AgentWriteLimiter
from agentbox.api.auth.authentication import ANONYMOUS, Authenticator, Caller, require
from agentbox.api.auth.on_behalf import resolve_on_behalf
from agentbox.api.auth.rates import RequestLimiter
from agentbox.api.hold import Hold
from agentbox.api.mesh.session_callers import SESSION
from agentbox.contracts.routes.route import Route
from agentbox.core.http.headers import (
    BoxAddresses,
    allowed_hosts,
    check_accept,
    check_host,
    check_probe_host,
    probe_hosts,
)
from agentbox.core.http.responses import JSON, STREAM


class RequestAccess:
    """Counts the requests of callers and agents, too."""

    def __init__(
        self, authenticator: Authenticator, box: BoxAddresses, hold: Hold | None = None
    ) -> None:
        self._authenticator, self._hold = authenticator, hold
        self._rates, self._agent_rates = RequestLimiter(), AgentWriteLimiter()
        self._hosts, self._probe_hosts = allowed_hosts(box), probe_hosts(box)

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raises Misdirected when `Host` names another server."""
        check_host(headers, self._hosts)

    def authorize(self, route: Route, headers: Mapping[str, str]) -> Caller:
        """The caller. Probes are public, under any address and the box's names; every other route
        checks Host strictly. Raises a typed error for each refusal.
        """
        if route.is_probe:
            check_probe_host(headers, self._probe_hosts)
            return ANONYMOUS
        check_host(headers, self._hosts)
        caller = ANONYMOUS
        if not route.is_public:
            caller = self._authenticator.authenticate(
                headers.get("authorization"), include_ended=SESSION in route.scope
            )
            caller = resolve_on_behalf(caller, headers, route)
        self._rates.acquire(caller)
        self._agent_rates.acquire(caller, route, headers)
        require(caller, route.scope)
        if self._hold is not None:
            self._hold.check(route)
        if route.media == "json":
            check_accept(headers, STREAM if route.stream else JSON)
        return caller
