"""The complete route table. Rows are matched in this order, so a fixed path precedes one with a
parameter.
"""

from collections.abc import Mapping

from agentbox.contracts.routes.agents import AGENTS, TASKS
from agentbox.contracts.routes.approvals import APPROVALS
from agentbox.contracts.routes.beads import BEADS
from agentbox.contracts.routes.box import BOX
from agentbox.contracts.routes.events import EVENTS
from agentbox.contracts.routes.memory import MEMORY
from agentbox.contracts.routes.mesh import MESH
from agentbox.contracts.routes.pods import PODS
from agentbox.contracts.routes.reviews import REVIEWS
from agentbox.contracts.routes.route import Route
from agentbox.contracts.routes.states import STATES
from agentbox.contracts.routes.tokens import TOKENS

ROUTES: tuple[Route, ...] = (
    *BOX,
    *BEADS,
    *PODS,
    *MEMORY,
    *EVENTS,
    *AGENTS,
    *TASKS,
    *REVIEWS,
    *APPROVALS,
    *STATES,
    *TOKENS,
    *MESH,
)
BY_NAME: Mapping[str, Route] = {route.name: route for route in ROUTES}

# Scopes of tokens. `admin` includes all but `core`; `core` is for per-boot tokens only,
# `mesh:session` for the token of a mesh session: neither can be assigned.
SCOPES: frozenset[str] = frozenset(
    f"{slot}:{verb}"
    for slot in ("beads", "pods", "memory", "events", "agents", "approvals")
    for verb in ("read", "write")
) | {"reviews:write", "mesh:join", "mesh:admin", "mesh:session", "admin", "core"}
