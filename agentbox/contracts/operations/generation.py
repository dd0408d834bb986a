"""Operations of the generation that runs."""

from agentbox.contracts.generation import GenerationEndpoints
from agentbox.contracts.routes.operation import read, write
from agentbox.contracts.routes.resource import Resource

_ADMIN = ("admin",)

GENERATION = Resource(
    "generation",
    GenerationEndpoints,
    operations=(
        read(
            "show",
            "GET /v1/generation",
            "Whether the box is held, and what its stores contain.",
            route="show_generation",
            scope=("config:read",),
        ),
        write(
            "release",
            "POST /v1/release",
            "Ends a held start: writes, agents, tasks, the mesh and deliveries begin. Nothing "
            "changes in a box that is not held.",
            route="release_generation",
            scope=_ADMIN,
        ),
        write(
            "try_agent",
            "POST /v1/generation/agent",
            "Starts an agent of the default profile that runs `true`, and waits for its end; a "
            "held box does this too.",
            route="try_agent",
            scope=_ADMIN,
            deadline_s=60,
        ),
    ),
)
RESOURCES = (GENERATION,)
