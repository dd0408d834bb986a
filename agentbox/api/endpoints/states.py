"""States over HTTP: visible to and removable by their creator and admins."""

import re
from typing import Any

from agentbox.api import states
from agentbox.api.auth.access import require
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.states import ADOPTED_NAME, LEGACY_NAME, AdoptBody, State, States
from agentbox.core.http.problems import invalid
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import NotFound

PAGE, LIMIT = 100, (1, 500)


async def list_states(call: Call) -> Reply:
    """Admins see all states, and with `legacy` also data from before states existed."""
    limit, admin = call.integer("limit", PAGE, *LIMIT), call.caller.has_scope("admin")
    params = {
        "owner": "" if admin else call.caller.principal,
        "after": call.query.get("cursor", ""),
        "limit": limit + 1,
    }
    rows = (await states.call_agent_host(call.services, "state.list", **params))["items"]
    legacy: list[str] = []
    if call.boolean("legacy", False):
        require(call.caller, ("admin",))
        legacy = await states.legacy_names(call.services.slots)
    cursor = rows[limit - 1]["state_id"] if len(rows) > limit else None
    return Reply(
        States(
            items=tuple(map(State.from_wire, rows[:limit])),
            next_cursor=cursor,
            legacy=tuple(legacy),
        )
    )


async def show(call: Call) -> Reply:
    """By id or name."""
    state = State.from_wire(
        await states.call_agent_host(call.services, "state.get", **_state_params(call))
    )
    contents = await states.count_contents(
        call.services.slots, states.state_location(state.state_id)
    )
    return Reply({**to_wire(state), "holds": to_wire(contents)})


async def remove(call: Call) -> Reply:
    """409 `state-busy` while a run uses it. Data in an unavailable slot is removed later."""
    state = State.from_wire(
        await states.call_agent_host(call.services, "state.remove", **_state_params(call))
    )
    removed = await states.remove_detached(
        call.services, state, call.caller.principal, report_empty=True
    )
    return Reply(removed)


async def adopt(call: Call) -> Reply:
    """409 `name-taken` where that name has another state. May be repeated after an interruption."""
    body = call.record(AdoptBody)
    for name, pattern in (("source", LEGACY_NAME), ("name", ADOPTED_NAME)):
        if not re.fullmatch(pattern, getattr(body, name)):
            raise invalid(
                f"/{name}",
                "is not a valid state name" if name == "name" else "must be legacy.<agent>",
            )
    agent = body.name.removeprefix("agents.")
    if agent != body.name and agent not in call.services.plan.agents:
        raise NotFound(f"cannot find the agent {agent} in the manifest", resource="agent", id=agent)
    slots = call.services.slots
    if body.source not in await states.legacy_names(slots):
        raise NotFound(f"cannot find {body.source}", resource="state", id=body.source)
    params = {"name": body.name, "source": body.source, "principal": call.caller.principal}
    state = State.from_wire(await states.call_agent_host(call.services, "state.adopt", **params))
    moved = await states.move(
        slots, states.legacy_location(body.source), states.state_location(state.state_id)
    )
    data = {
        "state_id": state.state_id,
        "name": body.name,
        "source": body.source,
        "by": call.caller.principal,
    }
    await slots.journal.record("state.adopted", {**data, **to_wire(moved)})
    return Reply({**to_wire(state), "holds": to_wire(moved)})


def _state_params(call: Call) -> dict[str, Any]:
    admin = call.caller.has_scope("admin")
    return {"state": call.parameters["id"], "principal": call.caller.principal, "admin": admin}
