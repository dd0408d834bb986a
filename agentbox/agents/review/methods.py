"""The RPC methods `review.*`."""

from collections.abc import Mapping
from typing import Any

from agentbox.agents.rpc.service import Service
from agentbox.core.records.wire import from_wire
from agentbox.core.rpc.session import Method, Params, Session


async def page(session: Session[Service], _params: Params) -> Any:
    return {"items": session.service.host.reviews.page()}


async def show(session: Session[Service], params: Params) -> Any:
    start, limit = from_wire(int, params["at"]), from_wire(int, params["limit"])
    return await session.service.host.reviews.show(from_wire(str, params["agent_id"]), start, limit)


async def commit(session: Session[Service], params: Params) -> Any:
    agent_id, digest, by = (from_wire(str, params[name]) for name in ("agent_id", "digest", "by"))
    return await session.service.host.reviews.commit(agent_id, digest, by)


async def discard(session: Session[Service], params: Params) -> Any:
    agent_id, by = (from_wire(str, params[name]) for name in ("agent_id", "by"))
    return await session.service.host.reviews.discard(agent_id, by)


METHODS: Mapping[str, Method[Service]] = {
    "review.list": page,
    "review.show": show,
    "review.commit": commit,
    "review.discard": discard,
}
