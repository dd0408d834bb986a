"""What serves each operation."""

from inspect import signature
from typing import Any, get_type_hints

import pytest

from agentbox.api.app import Api
from agentbox.api.auth.authentication import Caller
from agentbox.api.http.handler import EndpointGroup, OperationHandler
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.operations.beads import BEADS
from agentbox.contracts.operations.box import PAGES
from agentbox.contracts.routes.operation import Operation
from agentbox.contracts.routes.registry import RESOURCES
from agentbox.contracts.routes.resource import Resource, without_none

SERVED = [(one, row) for one in (*RESOURCES, PAGES) for row in one.operations if row.http]


def methods(group: EndpointGroup) -> dict[str, Any]:
    """The public methods of a group's endpoints."""
    found = vars(type(group.endpoints))
    return {name: one for name, one in found.items() if not name.startswith("_")}


async def test_every_operation_has_exactly_one_handler(built: Api) -> None:
    """A method of its group, or the slot's own where the table says all; and no method serves nothing."""
    groups = built.groups
    unserved = {(name, method) for name, group in groups.items() for method in methods(group)}
    for resource, row in SERVED:
        group = groups[resource.endpoints]
        OperationHandler(group, resource, row)
        if row.name in methods(group):
            unserved.remove((resource.endpoints, row.name))
        else:
            assert group.slot is not None
            assert hasattr(group.slot, row.name)
    assert unserved == set()
    assert {resource.endpoints for resource, _ in SERVED} == set(groups)


def kinds(resource: Resource, row: Operation, name: str) -> set[Any]:
    """The types that a handler may give to an argument: for the body, also the record that the row gives."""
    members = {one.name: one.annotation for one in row.extra}
    hints = get_type_hints(getattr(resource.protocol, row.name))
    kind = without_none(hints.get(name, members.get(name)))
    given = isinstance(row.body, type) and isinstance(kind, type) and issubclass(row.body, kind)
    return {kind, row.body} if given else {kind}


async def test_a_handler_has_the_types_of_its_operation(built: Api) -> None:
    """mypy does not see that an argument comes from the table."""
    groups = built.groups
    for resource, row in SERVED:
        if (handler := methods(groups[resource.endpoints]).get(row.name)) is None:
            continue
        for name, hint in get_type_hints(handler).items():
            kind = without_none(hint)
            if name in ("caller", "request"):
                assert kind is {"caller": Caller, "request": ApiRequest}[name]
            elif name != "return":
                assert kind in kinds(resource, row, name), f"{resource.name}.{row.name}: {name}"


class Forgetful:
    """Endpoints that leave out an argument."""

    async def heartbeat(self, bead_id: str) -> None: ...

    async def ready(self, request: ApiRequest) -> None: ...

    async def show(self, bead: str) -> None: ...


class Slot:
    """Of which nothing checks the calls."""

    async def claim(self, **_: Any) -> None: ...


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("heartbeat", "ignores lease_id"),
        ("show", "has no argument bead"),
        ("claim", "nothing checks the call of an agent"),
    ],
)
def test_a_handler_that_drops_an_argument_is_refused(name: str, message: str) -> None:
    """And one for agents without a check, where no method is there to make it."""
    with pytest.raises(TypeError, match=message):
        OperationHandler(EndpointGroup(Forgetful(), Slot()), BEADS, BEADS.by_name[name])


def test_a_handler_of_the_request_may_read_it_itself() -> None:
    """It need not name the arguments."""
    assert signature(Forgetful.ready).parameters.keys() == {"self", "request"}
    OperationHandler(EndpointGroup(Forgetful()), BEADS, BEADS.by_name["ready"])
