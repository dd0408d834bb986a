"""Operations of states: the memory and pods of runs."""

from agentbox.contracts.routes.operation import read, write
from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.states import AdoptBody, StateEndpoints

STATES = Resource(
    "states",
    StateEndpoints,
    scope="agents",
    operations=(
        read(
            "list_states",
            "GET /v1/states",
            "States that the caller created, oldest first; an admin sees all.",
        ),
        write(
            "adopt",
            "POST /v1/states",
            "Adopts data that an agent left under its name before runs had their own states.",
            route="adopt_state",
            scope=("admin",),
            body=AdoptBody,
        ),
        read(
            "show",
            "GET /v1/states/{id}",
            "One state by id or name, with its contents.",
            route="show_state",
        ),
        write(
            "remove",
            "DELETE /v1/states/{id}",
            "Removes memory and pods of an unused state, by id or name; returns their number.",
            route="remove_state",
        ),
    ),
)
RESOURCES = (STATES,)
