"""What serves an operation: a method of its group's endpoints, or the slot's method."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, get_args, get_origin

from starlette.responses import Response

from agentbox.api.auth.authentication import Check
from agentbox.api.http.arguments import ArgumentReader
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.routes.operation import Operation
from agentbox.contracts.routes.resource import Resource
from agentbox.core.http.responses import RecordResponse

_CONTEXT = frozenset({"caller", "request"})


@dataclass(frozen=True)
class EndpointGroup:
    """What serves the operations of a resource: the method of `endpoints` with the name of the
    operation, else that of `slot`. A method gets the arguments of the operation by name, and the
    caller if it names it; one that names `request` may leave out arguments. Its result is a record
    or plain data, sent with the first status of the row; a value and whether it was created; None
    (204); a Starlette response; or the application that serves a WebSocket. `checks`, by argument,
    precede each call that has the argument.
    """

    endpoints: object = None
    slot: object = None
    checks: Mapping[str, Check] = field(default_factory=dict)


class OperationHandler:
    """Serves one operation. Raises TypeError for a group that cannot (a bug): an argument that is
    not handed on, or a call of an agent that nothing checks.
    """

    def __init__(self, group: EndpointGroup, resource: Resource, row: Operation) -> None:
        self._row = row
        result = resource.signature(row.name).return_annotation
        self._creates = get_origin(result) is tuple and get_args(result)[1:] == (bool,)
        method = getattr(group.endpoints, row.name, None)
        self._call: Callable[..., Awaitable[Any]] = method or getattr(group.slot, row.name)
        parameters = frozenset(signature(method).parameters) if method else None
        self._context = (parameters or frozenset()) & _CONTEXT
        self._arguments = ArgumentReader(
            resource, row, None if parameters is None else parameters - _CONTEXT
        )
        self._checks = tuple(
            (name, check) for name, check in group.checks.items() if name in self._arguments.names
        )
        if "request" not in self._context:
            self._check_complete(resource)
        if method is None and row.agent is not None and not self._checks:
            raise TypeError(f"{resource.name}.{row.name}: nothing checks the call of an agent")

    def _check_complete(self, resource: Resource) -> None:
        if absent := ArgumentReader(resource, self._row).names - self._arguments.names:
            raise TypeError(f"{resource.name}.{self._row.name} ignores {sorted(absent)[0]}")

    async def __call__(self, request: ApiRequest) -> Any:
        """The response: an ASGI application."""
        arguments = self._arguments.read(request)
        for name, check in self._checks:
            await check(request.caller, arguments[name])
        if "caller" in self._context:
            arguments["caller"] = request.caller
        if "request" in self._context:
            arguments["request"] = request
        result = await self._call(**arguments)
        return result if callable(result) else self._response(result)

    def _response(self, result: Any) -> Response:
        if result is None:
            return Response(status_code=204)
        if not self._creates:
            return RecordResponse(result, self._row.statuses[0])
        value, created = result
        return RecordResponse(value, self._row.statuses[0 if created else 1])
