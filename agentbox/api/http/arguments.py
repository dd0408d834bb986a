"""The arguments of an operation, decoded from a request by its row and its signature. What reads
them is made once per route.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from inspect import Parameter
from typing import Any

from agentbox.api.auth.write_attribution import resolve_principal
from agentbox.api.http.query import query_value
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.routes.operation import Operation, RequestMember
from agentbox.contracts.routes.resource import Resource, placement_of, split_annotation
from agentbox.core.ids import uuid7
from agentbox.core.records.wire import Record

IDEMPOTENCY_HEADER = "Idempotency-Key"
# A value of a request and of its decoded body. Raises ValidationError.
_Read = Callable[[ApiRequest, Any], Any]


class ArgumentReader:
    """Reads the arguments in `names`; without it all that are sent. Raises TypeError for one that
    cannot be read (a bug).
    """

    def __init__(
        self, resource: Resource, row: Operation, names: Collection[str] | None = None
    ) -> None:
        readers = {
            name: read for name, read in _readers(resource, row) if names is None or name in names
        }
        if unknown := sorted(set(names or ()) - set(readers)):
            raise TypeError(f"{resource.name}.{row.name} has no argument {unknown[0]}")
        self.names = frozenset(readers)
        self._readers = tuple(readers.items())
        members = resource.members(row.name)
        in_body = {
            member.argument or member.name for member in members if member.location == "body"
        }
        body_argument = _body_argument(resource, row)
        uses_body = bool(self.names & in_body) or body_argument in self.names
        self._body = resource.body(row) if uses_body else None
        self._has_key = IDEMPOTENCY_HEADER in row.headers

    def read(self, request: ApiRequest) -> dict[str, Any]:
        """The arguments by name. Raises ValidationError with the pointer of the invalid part."""
        body = None if self._body is None else self._read_body(self._body, request)
        return {name: read(request, body) for name, read in self._readers}

    def _read_body(self, kind: type[Record], request: ApiRequest) -> Any:
        body: Any = kind.from_wire(request.body)
        if not self._has_key:
            return body
        return replace(body, dedup_key=request.dedup_key(body.dedup_key))


def _readers(resource: Resource, row: Operation) -> "list[tuple[str, _Read]]":
    members = resource.members(row.name)
    body_argument = _body_argument(resource, row)
    readers: list[tuple[str, _Read]] = []
    for argument in _arguments(resource, row):
        sent = [member for member in members if member.argument == argument.name]
        if argument.name == body_argument:
            readers.append((body_argument, lambda _, body: body))
        elif placement_of(argument.annotation).spread is not None:
            readers.append((argument.name, _record(argument, sent, row)))
        elif sent:
            readers.append((argument.name, _value(sent[0], row)))
    if not isinstance(row.body, type):
        extra = (member for member in members if not member.argument)
        readers += [(member.name, _value(member, row)) for member in extra]
    return readers


def _arguments(resource: Resource, row: Operation) -> list[Parameter]:
    return list(resource.signature(row.name).parameters.values())[1:]


def _body_argument(resource: Resource, row: Operation) -> str:
    """The argument that is the body, where the row gives the record; "" if there is none."""
    if not isinstance(row.body, type):
        return ""
    for argument in _arguments(resource, row):
        kind, _ = split_annotation(argument.annotation)
        if isinstance(kind, type) and issubclass(row.body, kind):
            return argument.name
    return ""


def _record(argument: Parameter, members: list[RequestMember], row: Operation) -> _Read:
    """A record whose members are sent instead of it."""
    kind, _ = split_annotation(argument.annotation)
    member_readers = [(member.record_field, _value(member, row)) for member in members]

    def read(request: ApiRequest, body: Any) -> Any:
        return kind.from_wire(
            {name: read_member(request, body) for name, read_member in member_readers}
        )

    return read


def _value(member: RequestMember, row: Operation) -> _Read:
    if member.location == "path":
        return lambda request, _: request.parameters[member.name]
    if member.location == "query":
        return _in_query(member, row)
    if member.location == "header":
        return _in_header(member, row)
    if member.principal:
        pointer = f"/{member.name}"
        return lambda request, body: resolve_principal(
            request.caller, pointer, getattr(body, member.name)
        )
    return lambda _, body: getattr(body, member.name)


def _in_query(member: RequestMember, row: Operation) -> _Read:
    """`Last-Event-ID` of a reconnecting reader precedes the position in the query."""
    value = query_value(member)
    if not row.is_stream or member.name != "since":
        return lambda request, _: value(request.query)

    def read(request: ApiRequest, _body: Any) -> Any:
        last = request.last_event_id()
        return value(request.query) if last is None else last

    return read


def _in_header(member: RequestMember, row: Operation) -> _Read:
    """A request without an id gets a new one."""
    if member.name == IDEMPOTENCY_HEADER:
        return lambda request, _: request.idempotency_key() or uuid7()
    name = member.name.lower()
    return lambda request, _: request.headers.get(name)
