"""Routes of states: the memory and pods of runs."""

from agentbox.contracts.routes.route import Route

READ, WRITE = ("agents:read",), ("agents:write",)

STATES: tuple[Route, ...] = (
    Route(
        name="list_states",
        method="GET",
        path="/v1/states",
        scope=READ,
        handler="states.list_states",
        response="States",
        query=("limit", "cursor", "legacy"),
        summary="States that the caller created, oldest first; an admin sees all.",
    ),
    Route(
        name="adopt_state",
        method="POST",
        path="/v1/states",
        scope=("admin",),
        handler="states.adopt",
        request="AdoptBody",
        response="State",
        body_limit=None,
        summary="Adopts data that an agent left under its name before runs had their own states.",
    ),
    Route(
        name="show_state",
        method="GET",
        path="/v1/states/{id}",
        scope=READ,
        handler="states.show",
        response="State",
        summary="One state by id or name, with its contents.",
    ),
    Route(
        name="remove_state",
        method="DELETE",
        path="/v1/states/{id}",
        scope=WRITE,
        handler="states.remove",
        response="StateHolds",
        summary="Removes memory and pods of an unused state, by id or name; returns their number.",
    ),
)
