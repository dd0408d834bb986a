"""The parameters of a client method, from the signature of its operation."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, Final, get_args, get_type_hints

from agentbox.contracts.routes.operation import Operation
from agentbox.contracts.routes.request_line import path_parameters
from agentbox.contracts.routes.resource import Resource, placement_of, without_none

_NO_BODY: Final = ("GET", "DELETE")
IDEMPOTENCY_KEY: Final = "Idempotency-Key"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """`wire` is its name when sent; `location` is path, query, body, whole or header."""

    name: str
    wire: str
    location: str
    annotation: Any
    default: Any = inspect.Parameter.empty
    keyword: bool = False

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


def parameters(resource: Resource, row: Operation) -> Iterator[Parameter]:
    """In the order of the signature; members of a request record stand for their argument."""
    in_path = path_parameters(row.path)
    rest = "query" if row.method in _NO_BODY else "body"
    given, is_sent = row.body if isinstance(row.body, type) else None, False
    for argument in list(resource.signature(row.name).parameters.values())[1:]:
        for one in _argument(argument, in_path, rest):
            if one.location != "body" or given is None:
                yield one
            elif not is_sent:
                is_sent = True
                yield from _record(one, given)
    for member in row.extra:
        yield Parameter(
            name=member.name, wire=member.name, location=rest, annotation=member.annotation,
            default=member.default, keyword=True,
        )  # fmt: skip
    if IDEMPOTENCY_KEY in row.headers:
        yield Parameter(
            name="request_id",
            wire=IDEMPOTENCY_KEY,
            location="header",
            annotation=str,
            default="",
            keyword=True,
        )


def _argument(
    argument: inspect.Parameter, in_path: tuple[str, ...], rest: str
) -> Iterator[Parameter]:
    placement = placement_of(argument.annotation)
    if placement.internal:
        return
    if placement.spread is not None:
        yield from _members(get_args(argument.annotation)[0], placement.spread, in_path, rest)
        return
    wire = placement.header or placement.name or argument.name
    default = argument.default
    if placement.header and default is inspect.Parameter.empty:
        default = ""
    if placement.principal:
        default = None
    yield Parameter(
        name=argument.name,
        wire=wire,
        location="header" if placement.header else "path" if wire in in_path else rest,
        annotation=argument.annotation | None if placement.principal else argument.annotation,
        default=default,
        keyword=argument.kind is inspect.Parameter.KEYWORD_ONLY,
    )


def _members(
    kind: type, replaced: Mapping[str, Any], in_path: tuple[str, ...], rest: str
) -> Iterator[Parameter]:
    hints = {**get_type_hints(kind, include_extras=True), **replaced}
    for one in fields(kind):
        wire = placement_of(hints[one.name]).name or one.name
        has_default = one.default is not MISSING or one.default_factory is not MISSING
        default = None if one.default is MISSING else one.default
        yield Parameter(
            name=one.name,
            wire=wire,
            location="path" if wire in in_path else rest,
            annotation=hints[one.name],
            default=default if has_default else inspect.Parameter.empty,
            keyword=has_default,
        )


def _record(argument: Parameter, given: type[Any]) -> Iterator[Parameter]:
    """The members of the request record; the argument itself if the record adds some to it."""
    kind = without_none(argument.annotation)
    added = (
        {one.name for one in fields(given)} - {one.name for one in fields(kind)}
        if is_dataclass(kind)
        else set()
    )
    if added:
        yield Parameter(
            name=argument.name, wire="", location="whole", annotation=argument.annotation
        )
    for one in _members(given, {}, (), "body"):
        if not added or one.name in added:
            yield one
