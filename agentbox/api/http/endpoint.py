"""A route of the table as an ASGI endpoint. Checks come in this order: repeated headers, Host,
caller, rate, scope, Accept, upgrade, query, body.
"""

from functools import cached_property
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.api.auth.authentication import Caller
from agentbox.api.auth.open_calls import OpenCalls
from agentbox.api.auth.operator_journal import OperatorJournal, is_person
from agentbox.api.auth.request_access import RequestAccess
from agentbox.api.endpoints.cloudevents import MEDIA_TYPES as CLOUD_TYPES
from agentbox.api.http.call_connection import CallConnection
from agentbox.api.http.handler import EndpointGroup, OperationHandler
from agentbox.api.http.query import parse_query
from agentbox.api.http.request import ApiRequest
from agentbox.api.plan_source import PlanSource
from agentbox.contracts.routes.operation import Operation
from agentbox.contracts.routes.resource import Resource
from agentbox.core.frozen import frozen
from agentbox.core.http.body import BodyReader, reject_body
from agentbox.core.http.headers import check_duplicates, trace_id
from agentbox.core.http.problems import invalid
from agentbox.core.http.responses import JSON
from agentbox.core.ids import new_trace_id
from agentbox.core.slot_errors import AdapterError


@frozen
class Guards:
    """What decides on a request, follows the calls that last, and records what people do."""

    access: RequestAccess
    calls: OpenCalls
    operators: OperatorJournal


class OperationEndpoint:
    """Serves one operation. Every refusal is raised as a typed error."""

    def __init__(
        self,
        guards: Guards,
        plans: PlanSource,
        group: EndpointGroup,
        resource: Resource,
        row: Operation,
    ) -> None:
        self.route = route = resource.route(row)
        self._guards, self._plans = guards, plans
        self._group, self._resource, self._row = group, resource, row
        self._accepted = (JSON, *CLOUD_TYPES) if route.name == "append_events" else (JSON,)

    @cached_property
    def _handler(self) -> OperationHandler:
        """Made at the first request, not at the start."""
        return OperationHandler(self._group, self._resource, self._row)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route, headers = self.route, scope["state"]["headers"]
        incoming = scope["state"]["body"] = BodyReader(scope, receive, headers)
        check_duplicates(scope["headers"])
        caller = self._guards.access.authorize(route, headers)
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
            limit = route.body_limit
            cap = self._plans.current.api.max_body if limit is None else limit
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
            peer=(scope.get("client") or ("",))[0],
        )
        with as_caller(_context(caller, headers, scope["state"]["request_id"])):
            response = await self._handle(request, scope)
            if isinstance(response, Response) and is_unread(scope):
                response.headers["connection"] = "close"
            if not (route.stream or route.socket):
                await response(scope, receive, send)
                return
            connection = CallConnection(scope, receive, send)
            await self._guards.calls.run(
                caller, route.scope, connection.serve(response), connection.abort
            )

    async def _handle(self, request: ApiRequest, scope: Scope) -> Any:
        """The response. A write of a person is journalled before it is sent."""
        if self._row.kind not in ("write", "socket") or not is_person(request.caller):
            return await self._handler(request)
        outcome = "failed"
        try:
            response = await self._handler(request)
            status = getattr(response, "status_code", 200)
            outcome = "ok" if status < 400 else str(status)
            return response
        except AdapterError as error:
            outcome = error.code
            raise
        finally:
            await self._guards.operators.action(
                request.caller, request.route.name, scope["path"], outcome
            )


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
