"""Who may make a request: address, caller, rate, scope, and the type that the caller accepts."""

from collections.abc import Mapping

from agentbox.api.auth.agent_rates import AgentWriteLimiter
from agentbox.api.auth.authentication import ANONYMOUS, Authenticator, Caller, require
from agentbox.api.auth.browser_rules import BrowserRules
from agentbox.api.auth.logins import LoginStore
from agentbox.api.auth.on_behalf import resolve_on_behalf
from agentbox.api.auth.operator_journal import OperatorJournal
from agentbox.api.auth.rates import RequestLimiter
from agentbox.api.hold import Hold
from agentbox.api.mesh.session_callers import SESSION
from agentbox.contracts.logins import KEY_HEADER
from agentbox.contracts.routes.route import Route
from agentbox.core.http.headers import (
    BoxAddresses,
    allowed_hosts,
    check_accept,
    check_host,
    check_probe_host,
    probe_hosts,
)
from agentbox.core.http.problems import Unauthenticated
from agentbox.core.http.responses import JSON, STREAM
from agentbox.core.slot_errors import CrossSite, PermissionDenied


class RequestAccess:
    """Counts the requests of callers and agents, too."""

    def __init__(
        self,
        authenticator: Authenticator,
        box: BoxAddresses,
        hold: Hold,
        logins: LoginStore,
        rules: BrowserRules,
        operators: OperatorJournal,
    ) -> None:
        self._authenticator, self._hold = authenticator, hold
        self._logins, self._rules, self._operators = logins, rules, operators
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
            caller = resolve_on_behalf(self._authenticate(route, headers), headers, route)
        self._rates.acquire(caller)
        self._agent_rates.acquire(caller, route, headers)
        try:
            require(caller, route.scope)
        except PermissionDenied as error:
            self._operators.refused(caller, route.name, error.code)
            raise
        self._hold.check(route)
        if route.media == "json":
            check_accept(headers, STREAM if route.stream else JSON)
        return caller

    def _authenticate(self, route: Route, headers: Mapping[str, str]) -> Caller:
        """By the bearer token where one is sent, whatever cookies there are; else by both halves of
        a session.
        """
        cookies = () if "authorization" in headers else self._rules.cookies(headers)
        if not cookies:
            return self._authenticator.authenticate(
                headers.get("authorization"), include_ended=SESSION in route.scope
            )
        try:
            self._rules.check(headers)
        except CrossSite as error:
            self._operators.refused(ANONYMOUS, route.name, error.code)
            raise
        caller = self._logins.find(cookies, headers.get(KEY_HEADER.lower(), ""))
        if caller is None:
            raise Unauthenticated(
                "cannot serve this route: the session is unknown or has ended, or its key is not "
                "sent",
                rule=f"send the cookie and the header {KEY_HEADER}, or sign in again",
            )
        return caller
