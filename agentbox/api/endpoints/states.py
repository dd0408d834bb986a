"""States over HTTP: who made one, or an admin, sees and removes it."""

import re
from typing import Any

from agentbox.api import states
from agentbox.api.auth.access import require
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.states import ADOPTED, LEGACY, AdoptBody, State, States
from agentbox.core.http.problems import invalid
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import NotFound

PAGE, LIMIT = 100, (1, 500)


async def list_states(call: Call) -> Reply:
    """An admin sees everybody's, and with `legacy` what was left before states were a run's own."""
    limit, admin = call.integer("limit", PAGE, *LIMIT), call.caller.holds("admin")
    asked = {"owner": "" if admin else call.caller.principal, "after": call.query.get("cursor", ""), "limit": limit + 1}
    rows = (await states.ask(call.services, "state.list", **asked))["items"]
    left: list[str] = []
    if call.truth("legacy", False):
        require(call.caller, ("admin",))
        left = await states.legacy(call.services.container)
    cursor = rows[limit - 1]["state_id"] if len(rows) > limit else None
    return Reply(States(items=tuple(map(State.from_wire, rows[:limit])), next_cursor=cursor, legacy=tuple(left)))


async def show(call: Call) -> Reply:
    """By id or name."""
    state = State.from_wire(await states.ask(call.services, "state.get", **_named(call)))
    holds = await states.holds(call.services.container, states.place_of(state.state_id))
    return Reply({**to_wire(state), "holds": to_wire(holds)})


async def remove(call: Call) -> Reply:
    """409 `state-busy` while a run of it lives. What a slot that is away still holds goes later, by itself."""
    state = State.from_wire(await states.ask(call.services, "state.remove", **_named(call)))
    gone = await states.remove_detached(call.services, state, call.caller.principal, tell_empty=True)
    return Reply(gone)


async def adopt(call: Call) -> Reply:
    """409 `name-taken` where that name has a state of something else. May be asked again after it was cut off."""
    body = call.record(AdoptBody)
    for name, pattern in (("source", LEGACY), ("name", ADOPTED)):
        if not re.fullmatch(pattern, getattr(body, name)):
            raise invalid(f"/{name}", "is no name of a state" if name == "name" else "must be legacy.<agent>")
    agent = body.name.removeprefix("agents.")
    if agent != body.name and agent not in call.services.plan.agents:
        raise NotFound(f"cannot find the agent {agent} in the manifest", resource="agent", id=agent)
    container = call.services.container
    if body.source not in await states.legacy(container):
        raise NotFound(f"cannot find {body.source}", resource="state", id=body.source)
    asked = {"name": body.name, "source": body.source, "principal": call.caller.principal}
    state = State.from_wire(await states.ask(call.services, "state.adopt", **asked))
    moved = await states.move(container, states.legacy_place(body.source), states.place_of(state.state_id))
    told = {"state_id": state.state_id, "name": body.name, "source": body.source, "by": call.caller.principal}
    await container.journal.record("state.adopted", {**told, **to_wire(moved)})
    return Reply({**to_wire(state), "holds": to_wire(moved)})


def _named(call: Call) -> dict[str, Any]:
    admin = call.caller.holds("admin")
    return {"state": call.parameters["id"], "principal": call.caller.principal, "admin": admin}
