"""Routes of states: whose memory and pods runs use."""

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
        summary="States that the caller made, oldest first; an admin sees everybody's.",
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
        summary="Takes over what an agent left under its name before states were a run's own.",
    ),
    Route(
        name="show_state",
        method="GET",
        path="/v1/states/{id}",
        scope=READ,
        handler="states.show",
        response="State",
        summary="One state by id or name, with what it holds.",
    ),
    Route(
        name="remove_state",
        method="DELETE",
        path="/v1/states/{id}",
        scope=WRITE,
        handler="states.remove",
        response="StateHolds",
        summary="Removes memory and pods of a state that no agent uses now, by id or name; answers how much that was.",
    ),
)
