"""Agents over HTTP."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import fields, replace

from starlette.responses import Response

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Page
from agentbox.api.auth.ownership import check_agent
from agentbox.api.endpoints.sockets import AttachmentSocket
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.arguments import MAX_GENERATION, MAX_GRACE
from agentbox.contracts.bodies import RunBody, SignalBody
from agentbox.contracts.operations.agents import NewAgent
from agentbox.contracts.orchestrator import (
    LIMIT,
    MAX_RUN_SECONDS,
    AgentFilter,
    AgentHandle,
    AgentInfo,
    AgentSpec,
    ExitRecord,
    RunResult,
)
from agentbox.core.http.problems import invalid
from agentbox.core.http.responses import EventStreamResponse, RecordResponse, header_list
from agentbox.core.http.sse import ServerSentEvent
from agentbox.core.ids import uuid7
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import PermissionDenied

FILTERS = ("state", "name", "parent_id", "label")
DEFAULT_PAGE = 100


def _request_id(request: ApiRequest) -> str:
    """`Idempotency-Key`, else a new one."""
    return request.idempotency_key() or uuid7()


async def spawn(request: ApiRequest) -> Response:
    orchestrator = request.services.slots.orchestrator
    body = request.record(NewAgent)
    spec = AgentSpec(**{field.name: getattr(body, field.name) for field in fields(AgentSpec)})
    if agent_id := request.caller.agent_id:
        if spec.parent_id not in (None, agent_id):
            raise PermissionDenied("cannot start an agent for another caller", scope="agents:own")
        spec = replace(spec, parent_id=agent_id)
    if body.input is not None and spec.stdin != "pipe":
        raise invalid("/input", "needs a spec whose stdin is a pipe")
    handle = await orchestrator.spawn(spec, request_id=_request_id(request), stdin=body.input)
    info = await orchestrator.get(handle.agent_id)
    location = header_list(("Location", f"/v1/agents/{handle.agent_id}"))
    return RecordResponse(info, 201, location)


async def run_once(request: ApiRequest) -> RunResult:
    body = request.record(RunBody)
    if not 0 < body.timeout_s <= MAX_RUN_SECONDS:
        raise invalid("/timeout_s", f"must be above 0 and at most {MAX_RUN_SECONDS:g}")
    return await request.services.slots.orchestrator.run_once(
        body.spec,
        request_id=_request_id(request),
        stdin=body.stdin,
        timeout_s=body.timeout_s,
        max_output=body.max_output,
    )


async def list_agents(request: ApiRequest) -> Page[AgentInfo]:
    wire = {name: request.query[name] for name in FILTERS if name in request.query}
    filter = AgentFilter.from_wire(
        {**wire, "parent_id": request.caller.agent_id} if request.caller.agent_id else wire
    )
    limit = request.integer("limit", DEFAULT_PAGE, *LIMIT)
    return await request.services.slots.orchestrator.list(
        filter, limit=limit, cursor=request.query.get("cursor")
    )


async def get(request: ApiRequest) -> AgentInfo:
    info = await request.services.slots.orchestrator.get(request.parameters["id"])
    check_agent(request, info, allow_self=True)
    return info


async def _check_parent(request: ApiRequest) -> None:
    """Raises PermissionDenied for an agent that the calling agent did not start."""
    if request.caller.agent_id:
        check_agent(
            request, await request.services.slots.orchestrator.get(request.parameters["id"])
        )


async def signal(request: ApiRequest) -> None:
    body = request.record(SignalBody)
    handle = AgentHandle(agent_id=request.parameters["id"], generation=body.generation)
    await request.services.slots.orchestrator.signal(handle, body.signal)


async def terminate(request: ApiRequest) -> ExitRecord:
    """The termination request is recorded as an event of the agent's run."""
    await _check_parent(request)
    grace, handle = request.number("grace_s", 0, MAX_GRACE), _handle(request)
    orchestrator = request.services.slots.orchestrator
    with context.as_caller(context.CORE):
        session_id = (await orchestrator.get(handle.agent_id)).session_id
    with context.as_caller(replace(context.current(), session_id=session_id or None)):
        return await orchestrator.terminate(handle, grace_s=grace)


async def revoke(request: ApiRequest) -> AgentInfo:
    orchestrator = request.services.slots.orchestrator
    return await orchestrator.revoke(request.parameters["id"], request.parameters["grant_id"])


async def attach(request: ApiRequest) -> AttachmentSocket:
    """A second client gets 409, before the upgrade."""
    await _check_parent(request)
    attachment = await request.services.slots.orchestrator.attach(_handle(request))
    return AttachmentSocket(attachment, request.services.closing)


def _handle(request: ApiRequest) -> AgentHandle:
    if "generation" not in request.query:
        raise invalid("?generation", "is missing")
    generation = request.integer("generation", 0, 0, MAX_GENERATION)
    return AgentHandle(agent_id=request.parameters["id"], generation=generation)


async def stream(request: ApiRequest) -> Response:
    """An unknown agent is 404, and a trimmed cursor 410, before the first byte."""
    await _check_parent(request)
    orchestrator, agent_id = request.services.slots.orchestrator, request.parameters["id"]
    since, follow = request.since(0) or 0, request.boolean("follow", True)
    async with aclosing(orchestrator.stream(agent_id, since=since, follow=False)) as items:  # type: ignore[type-var]
        await anext(aiter(items), None)

    async def sent() -> AsyncIterator[ServerSentEvent]:
        async for item in orchestrator.stream(agent_id, since=since, follow=follow):
            yield ServerSentEvent(str(item.cursor), item.kind, to_wire(item))

    return EventStreamResponse(sent(), request.services.closing)
