"""The methods `approval.*` of the connection."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentbox.core.records.wire import from_wire
from agentbox.core.rpc.flows import Flow
from agentbox.core.slot_errors import PermissionDenied

if TYPE_CHECKING:
    from agentbox.agents.rpc.service import Service
    from agentbox.core.rpc.session import Session

Params = Mapping[str, Any]
_SECONDS = 120


async def ask(session: "Session[Service]", params: Params) -> Any:
    """Of an agent that runs now; answers when it was approved."""
    host, agent_id = session.service.host, from_wire(str, params["agent_id"])
    who = host.standings.live(agent_id)
    if who is None or who.generation != params["generation"]:
        raise PermissionDenied("it needs an approval: no process of that agent runs", scope="approvals")
    kind, value, words = (from_wire(str, params[name]) for name in ("kind", "value", "words"))
    seconds = float(who.limits.get("approval_timeout_seconds", _SECONDS))
    hold = params.get("hold") is True
    family = who.ancestors[-1].agent_id if who.ancestors else agent_id
    parameters = dict(params["parameters"])
    await host.approvals.ask((agent_id, who.name), kind, value, parameters, words, seconds, hold=hold, family=family)
    return {}


async def page(session: "Session[Service]", _params: Params) -> Any:
    return {"items": session.service.host.approvals.page()}


async def get(session: "Session[Service]", params: Params) -> Any:
    return session.service.host.approvals.get(from_wire(str, params["id"])).shown()


async def decide(session: "Session[Service]", params: Params) -> Any:
    approval_id, reason, by = (from_wire(str, params[name]) for name in ("id", "reason", "by"))
    approve = params["verdict"] == "approve"
    return await session.service.host.approvals.decide(approval_id, approve=approve, reason=reason, by=by)


async def follow(session: "Session[Service]", params: Params) -> Any:
    """A subscription without items: as long as it is open, somebody who may decide follows the events."""
    approvals = session.service.host.approvals
    flow = Flow(params["subscription"], params["credit"], session.send)

    def over() -> None:
        approvals.followers -= 1

    approvals.followers += 1
    session.follow(flow, flow.pass_items(_never()), over)
    return {}


async def _never() -> AsyncIterator[tuple[Any, int]]:
    await asyncio.get_running_loop().create_future()
    yield None, 0  # makes it an iterator


METHODS: Mapping[str, Callable[["Session[Service]", Params], Awaitable[Any]]] = {
    "approval.ask": ask,
    "approval.list": page,
    "approval.get": get,
    "approval.decide": decide,
    "approval.follow": follow,
}
