"""Arguments as their row and their signature say."""

from typing import Annotated, Any, Protocol

import pytest

from agentbox.api.auth.authentication import Caller
from agentbox.api.http.arguments import ArgumentReader
from agentbox.api.http.query import parse_query
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.routes.operation import (
    INTERNAL,
    PRINCIPAL,
    Operation,
    header,
    read,
    sent_as,
    spread,
    stream,
    write,
)
from agentbox.contracts.routes.resource import Resource
from agentbox.core.records.bounds import number_range
from agentbox.core.records.wire import JsonObj, Record, record
from agentbox.core.slot_errors import PermissionDenied, ValidationError


@record
class Handle(Record):
    parcel_id: str
    trip: int


@record
class NewParcel(Record):
    colour: str
    dedup_key: str | None = None


Id = Annotated[str, sent_as("id")]
Trip = Annotated[int, number_range(0, 9)]


class Parcels(Protocol):
    async def create(self, parcel: NewParcel) -> Handle: ...

    async def send(
        self,
        parcel_id: Id,
        sender: Annotated[str, PRINCIPAL],
        *,
        key: Annotated[str, header("Idempotency-Key")],
        weight: int = 5,
        inside: Annotated[bool, INTERNAL] = False,
    ) -> None: ...

    async def list(
        self,
        *,
        limit: Annotated[int, number_range(1, 500)] = 100,
        weight: Annotated[float | None, number_range(0, 60)] = None,
        heavy: bool = True,
        colours: tuple[str, ...] = (),
        filter: JsonObj | None = None,
    ) -> None: ...

    async def stop(self, handle: Annotated[Handle, spread(parcel_id=Id, trip=Trip)]) -> None: ...

    def follow(self, *, since: Annotated[int, number_range(-1, 99)] = -1) -> Any: ...


PARCELS = Resource(
    "parcels",
    Parcels,
    operations=(
        write("create", "POST /v1/parcels", body=NewParcel, headers=("Idempotency-Key",)),
        write("send", "POST /v1/parcels/{id}/send"),
        read("list", "GET /v1/parcels"),
        write("stop", "DELETE /v1/parcels/{id}"),
        stream("follow", "GET /v1/parcels/stream"),
    ),
)
ADA = Caller("ada")


def row(name: str) -> Operation:
    return PARCELS.by_name[name]


def arguments(
    name: str,
    query: str = "",
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
    names: set[str] | None = None,
    **path: str,
) -> dict[str, Any]:
    route = PARCELS.route(row(name))
    request = ApiRequest(
        route=route,
        method=route.method,
        parameters=path,
        query=parse_query(query.encode(), route.query),
        headers=headers or {},
        body=body,
        incoming=None,  # type: ignore[arg-type]
        caller=ADA,
    )
    return ArgumentReader(PARCELS, row(name), names).read(request)


def pointer(error: pytest.ExceptionInfo[ValidationError]) -> str:
    return str(error.value.members["errors"][0]["pointer"])


def test_from_the_path_the_body_and_a_header() -> None:
    """By the names of the arguments; what is not sent has its default, and the caller is the principal."""
    assert arguments("send", body={}, headers={"idempotency-key": "k"}, id="p1") == {
        "parcel_id": "p1", "sender": "ada", "key": "k", "weight": 5,
    }  # fmt: skip
    assert arguments("send", body={"weight": 7}, id="p1")["weight"] == 7
    assert len(arguments("send", body={}, id="p1")["key"]) == 36  # a request without an id gets one


def test_another_principal_needs_the_right_to_name_it() -> None:
    """The caller may name itself."""
    with pytest.raises(PermissionDenied):
        arguments("send", body={"sender": "bob"}, id="p1")
    assert arguments("send", body={"sender": "ada"}, id="p1")["sender"] == "ada"


def test_from_the_query() -> None:
    """Text becomes the type of the argument."""
    assert arguments("list") == {
        "limit": 100, "weight": None, "heavy": True, "colours": (), "filter": None,
    }  # fmt: skip
    query = "limit=7&weight=1.5e1&heavy=false&colours=red,,blue&filter=%7B%22a%22:1%7D"
    assert arguments("list", query) == {
        "limit": 7, "weight": 15.0, "heavy": False, "colours": ("red", "blue"), "filter": {"a": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "where", "detail"),
    [
        ("limit=0", "?limit", "must be an integer from 1 to 500"),
        ("limit=x", "?limit", "must be an integer from 1 to 500"),
        ("limit=", "?limit", "must be an integer from 1 to 500"),
        ("weight=61", "?weight", "must be a number from 0 to 60"),
        ("heavy=1", "?heavy", "must be true or false"),
        ("filter=[]", "?filter", "must be a JSON object"),
        ("filter={", "?filter", "must be a JSON object"),
        ("size=1", "?size", "is unknown"),
        ("limit=1&limit=2", "?", "has a duplicate parameter"),
        ("limit=%ff", "?", "is not valid UTF-8"),
    ],
)
def test_a_query_that_is_refused(query: str, where: str, detail: str) -> None:
    """With the pointer of the parameter, and its bounds."""
    with pytest.raises(ValidationError, match=detail) as caught:
        arguments("list", query)
    assert pointer(caught) == where


def test_the_members_of_a_record_are_put_together() -> None:
    """Each from its own place; one that is required must be there."""
    assert arguments("stop", "trip=3", id="p1") == {"handle": Handle(parcel_id="p1", trip=3)}
    with pytest.raises(ValidationError, match="is missing") as caught:
        arguments("stop", id="p1")
    assert pointer(caught) == "?trip"


def test_a_record_that_the_row_gives_is_the_body() -> None:
    """A key in the header is one of the caller and the route, unless the body has one."""
    sent = arguments("create", body={"colour": "red"}, headers={"idempotency-key": "k"})
    assert sent == {"parcel": NewParcel(colour="red", dedup_key="idem:ada:create:k")}
    (own,) = arguments(
        "create", body={"colour": "red", "dedup_key": "o"}, headers={"idempotency-key": "k"}
    ).values()
    assert own.dedup_key == "o"
    with pytest.raises(ValidationError) as caught:
        arguments("create", body={"size": 1})
    assert pointer(caught) == "/size"


def test_a_stream_resumes_at_the_last_event() -> None:
    """The header of a reconnecting reader precedes the query that it had at first."""
    assert arguments("follow") == {"since": -1}
    assert arguments("follow", "since=4") == {"since": 4}
    assert arguments("follow", "since=4", headers={"last-event-id": "6"}) == {"since": 6}
    with pytest.raises(ValidationError, match="Last-Event-ID"):
        arguments("follow", headers={"last-event-id": "-1"})


def test_only_what_is_asked_for_is_read() -> None:
    """Else a handler that reads the request itself could not read it in its own way."""
    assert arguments("list", "limit=0", names=set()) == {}
    assert arguments("create", body=3, names=set()) == {}
    with pytest.raises(TypeError, match="has no argument size"):
        ArgumentReader(PARCELS, row("list"), {"size"})
