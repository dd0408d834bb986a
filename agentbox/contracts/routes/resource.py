"""A resource: a Protocol and its table of operations, checked against each other at import, and the
routes, members and request records that follow from both.
"""

import inspect
import types
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields, is_dataclass, make_dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from agentbox.contracts.routes.operation import ArgumentPlacement, Operation, RequestMember
from agentbox.contracts.routes.request_line import path_parameters
from agentbox.contracts.routes.route import Method, Route
from agentbox.core.records.bounds import SchemaKeywords
from agentbox.core.records.page import Page
from agentbox.core.records.wire import Record

_NO_BODY = ("GET", "DELETE", "OPTIONS")
_DEFAULT = ArgumentPlacement()


class Resource:
    """`name` is the slot, and the group of the endpoints unless `endpoints` is given; `scope` is
    the first word of the default scopes. Raises TypeError if a row and the Protocol disagree.
    """

    def __init__(
        self,
        name: str,
        protocol: type,
        *,
        operations: tuple[Operation, ...],
        endpoints: str = "",
        scope: str = "",
    ) -> None:
        self.name = name
        self.protocol = protocol
        self.endpoints = endpoints or name
        self._scope = scope or name
        self.operations = operations
        self.by_name: Mapping[str, Operation] = {row.name: row for row in operations}
        self._members: dict[str, tuple[RequestMember, ...]] = {}
        self._bodies: dict[str, type[Record] | None] = {}
        self._signatures = {
            name: inspect.signature(method) for name, method in protocol_methods(protocol).items()
        }
        self._check_names()
        for row in operations:
            self._check_row(row)

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """One route per operation that is served over HTTP, in the order of the table."""
        return tuple(self._route(row) for row in self.operations if row.http)

    @cached_property
    def routes_by_name(self) -> Mapping[str, Route]:
        """The routes by their names."""
        return {route.name: route for route in self.routes}

    @cached_property
    def bodies(self) -> Mapping[str, type[Record]]:
        """The request records by name."""
        return {
            record.__name__: record
            for row in self.operations
            if (record := self.body(row)) is not None
        }

    def signature(self, name: str) -> inspect.Signature:
        """The signature of a method, with `self`."""
        return self._signatures[name]

    def members(self, name: str) -> tuple[RequestMember, ...]:
        """The members of a request, in the order of the arguments; none without HTTP."""
        if name not in self._members:
            row = self.by_name[name]
            self._members[name] = tuple(self._each_member(row)) if row.http else ()
        return self._members[name]

    def body(self, row: Operation) -> type[Record] | None:
        """The record of the request's body; None without one. Made on first use."""
        if row.name not in self._bodies:
            self._bodies[row.name] = self._make_body(row)
        return self._bodies[row.name]

    def route(self, row: Operation) -> Route:
        """The route of an operation that is served over HTTP."""
        return self.routes_by_name[row.route or row.name]

    def scopes(self, row: Operation) -> tuple[str, ...]:
        """The scopes that a caller needs."""
        verb = "read" if row.kind in ("read", "stream") else "write"
        return row.scope if row.scope is not None else (f"{self._scope}:{verb}",)

    def _check_names(self) -> None:
        methods = self._signatures
        if len(self.by_name) != len(self.operations):
            raise self._error("two rows have the same name")
        if missing := [name for name in methods if name not in self.by_name]:
            raise self._error(f"the method {missing[0]} has no row")
        if unknown := [name for name in self.by_name if name not in methods]:
            raise self._error(f"the row {unknown[0]} has no method")

    def _check_row(self, row: Operation) -> None:
        method = getattr(self.protocol, row.name)
        if row.is_stream == inspect.iscoroutinefunction(method):
            raise self._error(f"{row.name} is {row.kind}, but its method is not")
        arguments = self.signature(row.name).parameters
        used = [pointer.split("/")[1] for pointer in (*row.redact, *row.identifiers)]
        used += [row.deadline_from] if row.deadline_from else []
        if unknown := [name for name in used if name not in arguments]:
            raise self._error(f"{row.name} has no argument {unknown[0]}")
        members = self.members(row.name)
        names = [member.name for member in members]
        if absent := [name for name in path_parameters(row.path) if name not in names]:
            raise self._error(f"{row.name} has no argument for {{{absent[0]}}} of its path")
        if double := [name for name in names if names.count(name) > 1]:
            raise self._error(f"{row.name} sends {double[0]} twice")
        if row.agent is not None:
            for name in (*row.agent.without, *row.agent.optional):
                if name not in names:
                    raise self._error(f"{row.name} has no member {name}, which its tool excepts")

    def _error(self, detail: str) -> TypeError:
        return TypeError(f"operations of {self.protocol.__name__}: {detail}")

    def _each_member(self, row: Operation) -> Iterator[RequestMember]:
        in_path = path_parameters(row.path)
        rest = "query" if row.method in _NO_BODY else "body"
        record = row.body if isinstance(row.body, type) else None
        for argument in list(self.signature(row.name).parameters.values())[1:]:
            for member in _argument_members(argument):
                location = member.location or ("path" if member.name in in_path else rest)
                if location != "body" or record is None:
                    yield replace(member, location=location)
        for member in (*(_record_members(record, {}) if record else ()), *row.extra):
            yield replace(member, location=rest)

    def _make_body(self, row: Operation) -> type[Record] | None:
        if isinstance(row.body, type):
            return row.body
        members = [member for member in self.members(row.name) if member.location == "body"]
        if not members or row.media == "any":
            return None
        text = row.body_text or inspect.getdoc(getattr(self.protocol, row.name))
        record: type[Record] = make_dataclass(
            self._body_name(row),
            [_field(member) for member in members],
            bases=(Record,),
            namespace={"__doc__": text} if text else {},
            frozen=True,
            slots=True,
            kw_only=True,
        )
        return record

    def _route(self, row: Operation) -> Route:
        members = self.members(row.name)
        sent = [member for member in members if member.location == "header"]
        body = self._body_name(row)
        return Route(
            name=row.route or row.name,
            method=_method(row.method),
            path=row.path,
            scope=self.scopes(row),
            handler=f"{self.endpoints}.{row.name}",
            summary=row.summary,
            request=body,
            response=self._response(row),
            last=row.last,
            statuses=row.statuses,
            body_limit=row.body_limit if body else 0,
            query=tuple(member.name for member in members if member.location == "query"),
            headers=(*(member.name for member in sent), *row.headers),
            stream=row.is_stream,
            socket=row.kind == "socket",
            media=row.media,
            listener=row.listener,
            members=members,
            agents=row.agent is not None,
        )

    def _body_name(self, row: Operation) -> str:
        if isinstance(row.body, type):
            return row.body.__name__
        if not any(member.location == "body" for member in self.members(row.name)):
            return ""
        return row.body or f"{row.name.title().replace('_', '')}Body"

    def _response(self, row: Operation) -> str:
        result = self.signature(row.name).return_annotation
        return _record_name(result) if row.response is None else row.response


def protocol_methods(protocol: type) -> dict[str, Callable[..., Any]]:
    """The methods that a Protocol declares, by name."""
    return {
        name: item
        for name, item in vars(protocol).items()
        if inspect.isfunction(item) and not name.startswith("_")
    }


def without_none(annotation: Any) -> Any:
    """The annotation of a value that is present."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        present = [arg for arg in args if arg is not types.NoneType]
        return Union[tuple(present)]  # noqa: UP007 - of a computed number of types
    if origin is Annotated:
        return Annotated[(without_none(args[0]), *args[1:])]
    return annotation


def split_annotation(annotation: Any) -> tuple[Any, Mapping[str, Any]]:
    """The type of a present value, and the schema keywords that the annotation adds."""
    kind: Any = without_none(annotation)
    keywords: dict[str, Any] = {}
    while get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        for mark in marks:
            keywords |= mark.keywords if isinstance(mark, SchemaKeywords) else {}
        kind = without_none(inner)
    return kind, keywords


def placement_of(annotation: Any) -> ArgumentPlacement:
    """How an argument or a member with this annotation is sent."""
    if get_origin(annotation) is not Annotated:
        return _DEFAULT
    marks = get_args(annotation)[1:]
    return next((mark for mark in marks if isinstance(mark, ArgumentPlacement)), _DEFAULT)


def _method(name: str) -> Method:
    assert name in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"), name
    return name  # type: ignore[return-value]


def _argument_members(argument: inspect.Parameter) -> Iterator[RequestMember]:
    placement = placement_of(argument.annotation)
    if placement.internal:
        return
    if placement.spread is not None:
        kind = get_args(argument.annotation)[0]
        for member in _record_members(kind, placement.spread):
            yield replace(member, argument=argument.name)
        return
    required = argument.default is inspect.Parameter.empty and not placement.principal
    yield RequestMember(
        name=placement.header or placement.name or argument.name,
        argument=argument.name,
        location="header" if placement.header else "",
        annotation=argument.annotation | None if placement.principal else argument.annotation,
        principal=placement.principal,
        required=required,
        default=None if argument.default is inspect.Parameter.empty else argument.default,
    )


def _record_members(kind: type[Record], annotations: Mapping[str, Any]) -> Iterator[RequestMember]:
    hints = {**get_type_hints(kind, include_extras=True), **annotations}
    for item in fields(kind):  # type: ignore[arg-type]
        factory = item.default_factory
        yield RequestMember(
            name=placement_of(hints[item.name]).name or item.name,
            record_field=item.name,
            annotation=hints[item.name],
            required=item.default is MISSING and factory is MISSING,
            default=item.default if factory is MISSING else factory(),
        )


def _field(member: RequestMember) -> Any:
    if member.required:
        return member.name, member.annotation
    if isinstance(member.default, Mapping):
        return member.name, member.annotation, field(default_factory=dict)
    return member.name, member.annotation, field(default=member.default)


def _record_name(result: Any) -> str:
    """The name of the record that an annotation of a result contains; "" if there is none."""
    present = without_none(result)
    origin, args = get_origin(present), get_args(present)
    if origin is Page:
        return f"Page[{args[0].__name__}]"
    if origin is AsyncIterator or (origin is tuple and args[1:] == (bool,)):
        return _record_name(args[0])
    return present.__name__ if isinstance(present, type) and is_dataclass(present) else ""
