"""States over HTTP: visible to and removable by their creator and admins."""

import re
from collections.abc import Mapping
from typing import Any

from agentbox.api import states
from agentbox.api.auth.access import require
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.states import (
    ADOPTED_NAME,
    LEGACY_NAME,
    AdoptBody,
    StateHolds,
    States,
)
from agentbox.core.http.problems import invalid
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import NotFound

PAGE, LIMIT = 100, (1, 500)


async def list_states(request: ApiRequest) -> States:
    """Admins see all states, and with `legacy` also data from before states existed."""
    limit, admin = request.integer("limit", PAGE, *LIMIT), request.caller.has_scope("admin")
    rows = await request.services.agent_host.list_states(
        owner="" if admin else request.caller.principal,
        after=request.query.get("cursor", ""),
        limit=limit + 1,
    )
    legacy: list[str] = []
    if request.boolean("legacy", False):
        require(request.caller, ("admin",))
        legacy = await states.legacy_names(request.services.slots)
    cursor = rows[limit - 1].state_id if len(rows) > limit else None
    return States(
        items=rows[:limit],
        next_cursor=cursor,
        legacy=tuple(legacy),
    )


async def show(request: ApiRequest) -> Mapping[str, Any]:
    """By id or name."""
    state = await request.services.agent_host.get_state(**_state_arguments(request))
    contents = await states.count_contents(
        request.services.slots, states.state_location(state.state_id)
    )
    return {**to_wire(state), "holds": to_wire(contents)}


async def remove(request: ApiRequest) -> StateHolds:
    """409 `state-busy` while a run uses it. Data in an unavailable slot is removed later."""
    state = await request.services.agent_host.remove_state(**_state_arguments(request))
    return await states.remove_detached(
        request.services, state, request.caller.principal, report_empty=True
    )


async def adopt(request: ApiRequest) -> Mapping[str, Any]:
    """409 `name-taken` where that name has another state. May be repeated after an interruption."""
    body = request.record(AdoptBody)
    for name, pattern in (("source", LEGACY_NAME), ("name", ADOPTED_NAME)):
        if not re.fullmatch(pattern, getattr(body, name)):
            raise invalid(
                f"/{name}",
                "is not a valid state name" if name == "name" else "must be legacy.<agent>",
            )
    agent = body.name.removeprefix("agents.")
    if agent != body.name and agent not in request.services.plan.agents:
        raise NotFound(f"cannot find the agent {agent} in the manifest", resource="agent", id=agent)
    slots = request.services.slots
    if body.source not in await states.legacy_names(slots):
        raise NotFound(f"cannot find {body.source}", resource="state", id=body.source)
    state = await request.services.agent_host.adopt_state(
        name=body.name, source=body.source, principal=request.caller.principal
    )
    moved = await states.move(
        slots, states.legacy_location(body.source), states.state_location(state.state_id)
    )
    data = {
        "state_id": state.state_id,
        "name": body.name,
        "source": body.source,
        "by": request.caller.principal,
    }
    await slots.journal.record("state.adopted", {**data, **to_wire(moved)})
    return {**to_wire(state), "holds": to_wire(moved)}


def _state_arguments(request: ApiRequest) -> dict[str, Any]:
    admin = request.caller.has_scope("admin")
    return {
        "state": request.parameters["id"],
        "principal": request.caller.principal,
        "admin": admin,
    }
