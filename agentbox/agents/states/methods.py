"""The RPC methods `state.*`. The data of a state is in the slots, which agent-host cannot reach:
the caller removes or moves it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agentbox.agents.rpc.service import Service
from agentbox.agents.states.registry import check_owner
from agentbox.agents.states.state import StoredState
from agentbox.core.records.wire import from_wire
from agentbox.core.rpc.session import Method, Params, Session


async def page(session: Session[Service], params: Params) -> Any:
    states = session.service.host.states
    owner, after, limit = (
        from_wire(str, params["owner"]),
        from_wire(str, params["after"]),
        from_wire(int, params["limit"]),
    )
    return {"items": [_row(session, state) for state in await states.page(owner, after, limit)]}


async def get(session: Session[Service], params: Params) -> Any:
    """By id or name; `principal` and `admin` as in `remove`."""
    state = await session.service.host.states.find(from_wire(str, params["state"]))
    check_owner(state, from_wire(str, params["principal"]), admin=params["admin"] is True)
    return _row(session, state)


async def remove(session: Session[Service], params: Params) -> Any:
    """Detach the state; call `state.forget` after its data was removed."""
    owner, admin = from_wire(str, params["principal"]), params["admin"] is True
    return _row(
        session,
        await session.service.host.states.remove(
            from_wire(str, params["state"]), owner, admin=admin
        ),
    )


async def due(session: Session[Service], params: Params) -> Any:
    """Like `remove`, for states of runs last used before that time, and for incomplete removals."""
    states = await session.service.host.states.due(
        from_wire(float, params["before"]), from_wire(int, params["limit"])
    )
    return {"items": [_row(session, state) for state in states]}


async def discard(session: Session[Service], params: Params) -> Any:
    await session.service.host.states.discard(from_wire(str, params["state_id"]))
    return {}


async def adopt(session: Session[Service], params: Params) -> Any:
    name, source, owner = (from_wire(str, params[key]) for key in ("name", "source", "principal"))
    return _row(session, await session.service.host.states.adopt(name, source, owner))


def _row(session: Session[Service], state: StoredState) -> dict[str, Any]:
    return {
        **asdict(state),
        "agents": sorted(session.service.host.states.running_agents(state.state_id)),
    }


METHODS: Mapping[str, Method[Service]] = {
    "state.list": page,
    "state.get": get,
    "state.remove": remove,
    "state.due": due,
    "state.forget": discard,
    "state.adopt": adopt,
}
