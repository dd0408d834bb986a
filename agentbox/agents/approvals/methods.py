"""The RPC methods `approval.*`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agentbox.agents.rpc.service import Service
from agentbox.core.records.wire import from_wire
from agentbox.core.rpc.session import Method, Params, Session
from agentbox.core.rpc.subscriptions import ServerSubscription
from agentbox.core.slot_errors import PermissionDenied


async def request_approval(session: Session[Service], params: Params) -> Any:
    """For a running agent; returns once approved."""
    host, agent_id = session.service.host, from_wire(str, params["agent_id"])
    authorization = host.authorizations.active(agent_id)
    if authorization is None or authorization.generation != params["generation"]:
        raise PermissionDenied("approval required: the agent is not running", scope="approvals")
    kind, value, words = (from_wire(str, params[name]) for name in ("kind", "value", "words"))
    seconds = float(authorization.limits["approval_timeout_seconds"])
    hold = params.get("hold") is True
    family = authorization.ancestors[-1].agent_id if authorization.ancestors else agent_id
    parameters = dict(params["parameters"])
    await host.approvals.request_approval(
        (agent_id, authorization.name),
        kind,
        value,
        parameters,
        words,
        seconds,
        hold=hold,
        family=family,
    )
    return {}


async def page(session: Session[Service], _params: Params) -> Any:
    return {"items": session.service.host.approvals.page()}


async def get(session: Session[Service], params: Params) -> Any:
    return session.service.host.approvals.get(from_wire(str, params["id"])).describe()


async def decide(session: Session[Service], params: Params) -> Any:
    approval_id, reason, by = (from_wire(str, params[name]) for name in ("id", "reason", "by"))
    approve = params["verdict"] == "approve"
    return await session.service.host.approvals.decide(
        approval_id, approve=approve, reason=reason, by=by
    )


async def follow(session: Session[Service], params: Params) -> Any:
    """A subscription without items: while it is open, an approver is connected."""
    approvals = session.service.host.approvals
    subscription = ServerSubscription(params["subscription"], params["credit"], session.send)

    def on_end() -> None:
        approvals.approver_count -= 1

    approvals.approver_count += 1
    session.run_subscription(subscription, subscription.send_items(_no_items()), on_end)
    return {}


async def _no_items() -> AsyncIterator[tuple[Any, int]]:
    await asyncio.get_running_loop().create_future()
    yield None, 0  # makes it an iterator


METHODS: Mapping[str, Method[Service]] = {
    "approval.ask": request_approval,
    "approval.list": page,
    "approval.get": get,
    "approval.decide": decide,
    "approval.follow": follow,
}
