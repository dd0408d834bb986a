"""A resource: what follows from a row and its method, and what is refused at import."""

from typing import Annotated, Any, Protocol

import pytest

from agentbox.contracts.routes import operation
from agentbox.contracts.routes.operation import (
    INTERNAL,
    PRINCIPAL,
    WITHOUT_TOOL,
    Operation,
    header,
    read,
    sent_as,
    spread,
    stream,
    tool,
    write,
)
from agentbox.contracts.routes.registry import BY_NAME, RESOURCES, ROUTES
from agentbox.contracts.routes.resource import Resource
from agentbox.core.records.bounds import number_range
from agentbox.core.records.page import Page
from agentbox.core.records.schema import Schemas
from agentbox.core.records.wire import Record, record
from agentbox.core.slot_errors import ValidationError


@record
class Parcel(Record):
    number: str
    weight: int = 1


@record
class ParcelFilter(Record):
    colour: str | None = None
    size: int | None = None


class Parcels(Protocol):
    async def send(
        self,
        parcel_id: Annotated[str, sent_as("id")],
        sender: Annotated[str, PRINCIPAL],
        *,
        key: Annotated[str, header("Idempotency-Key")],
        weight: Annotated[int, number_range(1, 9)] = 5,
        box: Annotated[bool, INTERNAL] = False,
    ) -> tuple[Parcel, bool]:
        """`weight` in kilograms."""
        ...

    async def list(
        self, flt: Annotated[ParcelFilter, spread(size=int)], *, limit: int = 10
    ) -> Page[Parcel]: ...

    async def remove(self, parcel_id: Annotated[str, sent_as("id")]) -> None: ...


SEND = write(
    "send",
    "POST /v1/parcels/{id}",
    "Sends.",
    statuses=(201, 200),
    redact=("/weight",),
    agent=WITHOUT_TOOL,
)
LIST = read("list", "GET /v1/parcels", "Lists.", route="list_parcels")
REMOVE = write("remove", "DELETE /v1/parcels/{id}", "Removes.", statuses=(204,), scope=("admin",))


def parcels(*rows: Operation) -> Resource:
    return Resource("parcels", Parcels, operations=rows or (SEND, LIST, REMOVE))


def test_a_route_follows_from_row_and_method() -> None:
    """Name, scope, handler and response are derived, unless the row sets them."""
    send, found, remove = parcels().routes
    assert (send.name, send.method, send.path) == ("send", "POST", "/v1/parcels/{id}")
    assert (send.scope, send.handler) == (("parcels:write",), "parcels.send")
    assert (send.request, send.response, send.body_limit) == ("SendBody", "Parcel", None)
    assert (send.headers, send.query, send.agents) == (("Idempotency-Key",), (), True)
    assert (found.name, found.handler) == ("list_parcels", "parcels.list")
    assert (found.scope, found.response) == (("parcels:read",), "Page[Parcel]")
    assert found.query == ("colour", "size", "limit")
    assert (remove.scope, remove.response, remove.request, remove.body_limit) == (
        ("admin",), "", "", 0,
    )  # fmt: skip
    assert not remove.agents


def test_members_know_their_argument_place_and_default() -> None:
    """In the order of the arguments; arguments that are never sent are not members."""
    members = parcels().members("send")
    assert [(one.name, one.argument, one.location, one.required) for one in members] == [
        ("id", "parcel_id", "path", True),
        ("sender", "sender", "body", False),
        ("Idempotency-Key", "key", "header", True),
        ("weight", "weight", "body", False),
    ]
    assert members[3].default == 5
    (colour, size, limit) = parcels().members("list")
    assert (colour.argument, size.annotation, limit.default) == ("flt", int, 10)


def test_a_request_record_has_type_bounds_and_default_of_the_signature() -> None:
    """It decodes like one that is written by hand, and has its schema and description."""
    body: Any = parcels().bodies["SendBody"]
    assert body.from_wire({}) == body(sender=None, weight=5)
    with pytest.raises(ValidationError, match="/weight"):
        body.from_wire({"weight": "much"})
    with pytest.raises(ValidationError, match="/parcel_id"):
        body.from_wire({"parcel_id": "x"})
    schemas = Schemas()
    schemas.schema_of(body)
    assert schemas.components["SendBody"] == {
        "type": "object",
        "description": "`weight` in kilograms.",
        "properties": {
            "sender": {"type": ["string", "null"], "default": None},
            "weight": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
        },
        "additionalProperties": False,
    }


def test_members_that_are_no_arguments_are_in_the_request() -> None:
    """Of a body and of a query."""
    force = operation.RequestMember(name="force", annotation=bool | None, required=False)
    resource = parcels(
        write("send", "POST /v1/parcels/{id}", body="Sending", extra=(force,)),
        read("list", "GET /v1/parcels", extra=(force,)),
        REMOVE,
    )
    assert resource.routes[0].request == "Sending"
    assert resource.bodies["Sending"].from_wire({"force": True})
    assert resource.routes[1].query == ("colour", "size", "limit", "force")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((SEND, LIST), "the method remove has no row"),
        ((SEND, LIST, REMOVE, read("count")), "the row count has no method"),
        ((SEND, SEND, LIST, REMOVE), "two rows have the same name"),
        ((SEND, LIST, stream("remove")), "remove is stream, but its method is not"),
        ((SEND, LIST, write("remove", redact=("/note",))), "remove has no argument note"),
        ((SEND, LIST, write("remove", identifiers=("/x",))), "remove has no argument x"),
        (
            (SEND, LIST, write("remove", deadline_from="grace_s")),
            "remove has no argument grace_s",
        ),
        (
            (SEND, LIST, write("remove", "DELETE /v1/parcels/{number}")),
            "remove has no argument for {number} of its path",
        ),
        (
            (
                SEND,
                read(
                    "list",
                    "GET /x",
                    extra=(operation.RequestMember(name="size", annotation=int),),
                ),
                REMOVE,
            ),
            "list sends size twice",
        ),
        (
            (SEND, LIST, write("remove", "DELETE /x/{id}", agent=tool("t", without=("ns",)))),
            "remove has no member ns, which its tool excepts",
        ),
    ],
)  # fmt: skip
def test_a_row_that_disagrees_is_refused(rows: tuple[Operation, ...], message: str) -> None:
    """By a TypeError that names the Protocol and the row."""
    with pytest.raises(TypeError) as caught:
        parcels(*rows)
    assert str(caught.value) == f"operations of Parcels: {message}"


def test_the_registry_finds_each_route_by_its_name() -> None:
    """Also when the resources are imported one after the other."""
    assert {name: BY_NAME[name] for name in BY_NAME} == {route.name: route for route in ROUTES}
    assert len(BY_NAME) == len(ROUTES) == sum(len(resource.routes) for resource in RESOURCES)
    with pytest.raises(KeyError):
        BY_NAME["nothing"]


def test_each_request_record_of_a_route_is_known_by_its_resource() -> None:
    """A name in the table is that of a record, or of a body that is no record."""
    for resource in RESOURCES:
        for route in resource.routes:
            assert route.request in {"", "Body", "JsonPatch", *resource.bodies}
