"""A route of the table as an ASGI endpoint. Checks come in this order: repeated headers, Host,
caller, rate, scope, Accept, upgrade, query, body.
"""

from functools import cached_property

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.api.auth.access import ANONYMOUS, Caller, require
from agentbox.api.auth.on_behalf import resolve_on_behalf
from agentbox.api.endpoints.cloudevents import MEDIA_TYPES as CLOUD_TYPES
from agentbox.api.http.handler import Group, Handler
from agentbox.api.http.query import parse_query
from agentbox.api.http.request import ApiRequest
from agentbox.api.mesh.mesh_role import SESSION
from agentbox.api.services import Services
from agentbox.contracts.operation import Operation
from agentbox.contracts.resource import Resource
from agentbox.core.http.body import BodyReader, reject_body
from agentbox.core.http.headers import (
    allowed_hosts,
    check_accept,
    check_duplicates,
    check_host,
    check_probe_host,
    probe_hosts,
    trace_id,
)
from agentbox.core.http.problems import invalid
from agentbox.core.http.responses import JSON, STREAM
from agentbox.core.ids import new_trace_id


class Endpoint:
    """Serves one operation. Every refusal is raised as a typed error."""

    def __init__(
        self, services: Services, group: Group, resource: Resource, row: Operation
    ) -> None:
        self.route = route = resource.route(row)
        self._services, self._group, self._resource, self._row = services, group, resource, row
        self._hosts, self._probe_hosts = allowed_hosts(services.plan), probe_hosts(services.plan)
        self._accepted = (JSON, *CLOUD_TYPES) if route.name == "append_events" else (JSON,)

    @cached_property
    def _handler(self) -> Handler:
        """Made at the first request, not at the start."""
        return Handler(self._group, self._resource, self._row)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route, headers = self.route, scope["state"]["headers"]
        incoming = scope["state"]["body"] = BodyReader(scope, receive, headers)
        check_duplicates(scope["headers"])
        caller = self._authorize(headers)
        if route.socket != (scope["type"] == "websocket"):
            raise invalid(
                "Upgrade", "must be websocket" if route.socket else "is not supported for this path"
            )
        # On a probe it is ignored.
        query = {} if route.is_probe else parse_query(scope["query_string"], route.query)
        body = None
        if route.body_limit == 0:
            reject_body(headers)
        elif route.media == "json":
            cap = self._services.plan.api.max_body if route.body_limit is None else route.body_limit
            body = await incoming.read_json(cap, self._accepted)
        request = ApiRequest(
            route=route,
            method=scope.get("method", "GET"),
            parameters=scope["path_params"],
            query=query,
            headers=headers,
            body=body,
            incoming=incoming,
            caller=caller,
        )
        with as_caller(_context(caller, headers, scope["state"]["request_id"])):
            response = await self._handler(request)
            if isinstance(response, Response) and is_unread(scope):
                response.headers["connection"] = "close"
            await response(scope, receive, send)

    def _authorize(self, headers: dict[str, str]) -> Caller:
        """The caller. Probes are public, under any address and the box's names; every other route
        checks Host strictly.
        """
        route, services = self.route, self._services
        if route.is_probe:
            check_probe_host(headers, self._probe_hosts)
            return ANONYMOUS
        check_host(headers, self._hosts)
        caller = ANONYMOUS
        if not route.is_public:
            caller = services.authenticator.authenticate(
                headers.get("authorization"), include_ended=SESSION in route.scope
            )
            caller = resolve_on_behalf(caller, headers, route)
        services.rates.acquire(caller)
        services.agent_rates.acquire(caller, route, headers)
        require(caller, route.scope)
        if route.media == "json":
            check_accept(headers, STREAM if route.stream else JSON)
        return caller


def is_unread(scope: Scope) -> bool:
    """Whether the body of a route that reads bytes was not read to its end: the connection cannot
    be used again.
    """
    return bool(scope["endpoint"].route.media == "any" and scope["state"]["body"].unread)


def _context(caller: Caller, headers: dict[str, str], request_id: str) -> CallContext:
    """The trace is an agent's own; that of any other authenticated caller, or a new one."""
    trace = caller.trace_id or (trace_id(headers) if caller.principal else new_trace_id())
    return CallContext(
        principal=caller.principal,
        scopes=caller.scopes,
        request_id=request_id,
        agent_id=caller.agent_id or None,
        session_id=caller.session_id or None,
        trace_id=trace,
    )
