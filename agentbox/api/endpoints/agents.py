"""Agents over HTTP."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import fields, replace

from agentbox.adapters.runtime import context
from agentbox.api.auth.ownership import check_agent
from agentbox.api.http.call import MAX_GENERATION, MAX_GRACE, Call
from agentbox.api.http.reply import EventStream, Reply, ServerSentEvent, SocketReply
from agentbox.contracts.bodies import NewAgent, RunBody, SignalBody
from agentbox.contracts.orchestrator import (
    LIMIT,
    MAX_RUN_SECONDS,
    AgentFilter,
    AgentHandle,
    AgentSpec,
)
from agentbox.core.http.problems import invalid
from agentbox.core.ids import uuid7
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import PermissionDenied

FILTERS = ("state", "name", "parent_id", "label")
DEFAULT_PAGE = 100


def _request_id(call: Call) -> str:
    """`Idempotency-Key`, else a new one."""
    return call.idempotency_key() or uuid7()


async def spawn(call: Call) -> Reply:
    orchestrator = call.services.slots.orchestrator
    body = call.record(NewAgent)
    spec = AgentSpec(**{field.name: getattr(body, field.name) for field in fields(AgentSpec)})
    if agent_id := call.caller.agent_id:
        if spec.parent_id not in (None, agent_id):
            raise PermissionDenied("cannot start an agent for another caller", scope="agents:own")
        spec = replace(spec, parent_id=agent_id)
    if body.input is not None and spec.stdin != "pipe":
        raise invalid("/input", "needs a spec whose stdin is a pipe")
    handle = await orchestrator.spawn(spec, request_id=_request_id(call), stdin=body.input)
    info = await orchestrator.get(handle.agent_id)
    return Reply(info, status=201, headers=(("Location", f"/v1/agents/{handle.agent_id}"),))


async def run_once(call: Call) -> Reply:
    body = call.record(RunBody)
    if not 0 < body.timeout_s <= MAX_RUN_SECONDS:
        raise invalid("/timeout_s", f"must be above 0 and at most {MAX_RUN_SECONDS:g}")
    done = await call.services.slots.orchestrator.run_once(
        body.spec,
        request_id=_request_id(call),
        stdin=body.stdin,
        timeout_s=body.timeout_s,
        max_output=body.max_output,
    )
    return Reply(done)


async def list_agents(call: Call) -> Reply:
    wire = {name: call.query[name] for name in FILTERS if name in call.query}
    filter = AgentFilter.from_wire(
        {**wire, "parent_id": call.caller.agent_id} if call.caller.agent_id else wire
    )
    limit = call.integer("limit", DEFAULT_PAGE, *LIMIT)
    return Reply(
        await call.services.slots.orchestrator.list(
            filter, limit=limit, cursor=call.query.get("cursor")
        )
    )


async def get(call: Call) -> Reply:
    info = await call.services.slots.orchestrator.get(call.parameters["id"])
    check_agent(call, info, allow_self=True)
    return Reply(info)


async def _check_parent(call: Call) -> None:
    """Raises PermissionDenied for an agent that the calling agent did not start."""
    if call.caller.agent_id:
        check_agent(call, await call.services.slots.orchestrator.get(call.parameters["id"]))


async def signal(call: Call) -> Reply:
    body = call.record(SignalBody)
    handle = AgentHandle(agent_id=call.parameters["id"], generation=body.generation)
    await call.services.slots.orchestrator.signal(handle, body.signal)
    return Reply(status=204)


async def terminate(call: Call) -> Reply:
    """The termination request is recorded as an event of the agent's run."""
    await _check_parent(call)
    grace, handle = call.number("grace_s", 0, MAX_GRACE), _handle(call)
    orchestrator = call.services.slots.orchestrator
    with context.as_caller(context.CORE):
        session_id = (await orchestrator.get(handle.agent_id)).session_id
    with context.as_caller(replace(context.current(), session_id=session_id or None)):
        return Reply(await orchestrator.terminate(handle, grace_s=grace))


async def revoke(call: Call) -> Reply:
    orchestrator = call.services.slots.orchestrator
    return Reply(await orchestrator.revoke(call.parameters["id"], call.parameters["grant_id"]))


async def attach(call: Call) -> SocketReply:
    """A second client gets 409, before the upgrade."""
    await _check_parent(call)
    return SocketReply(await call.services.slots.orchestrator.attach(_handle(call)))


def _handle(call: Call) -> AgentHandle:
    if "generation" not in call.query:
        raise invalid("?generation", "is missing")
    generation = call.integer("generation", 0, 0, MAX_GENERATION)
    return AgentHandle(agent_id=call.parameters["id"], generation=generation)


async def stream(call: Call) -> EventStream:
    """An unknown agent is 404, and a trimmed cursor 410, before the first byte."""
    await _check_parent(call)
    orchestrator, agent_id = call.services.slots.orchestrator, call.parameters["id"]
    since, follow = call.since(0) or 0, call.boolean("follow", True)
    async with aclosing(orchestrator.stream(agent_id, since=since, follow=False)) as items:  # type: ignore[type-var]
        await anext(aiter(items), None)

    async def sent() -> AsyncIterator[ServerSentEvent]:
        async for item in orchestrator.stream(agent_id, since=since, follow=follow):
            yield ServerSentEvent(str(item.cursor), item.kind, to_wire(item))

    return EventStream(sent())
