"""Agents over HTTP, where more is done than the slot's call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import fields, replace

from starlette.responses import Response

from agentbox.adapters.runtime import context
from agentbox.api.auth.authentication import Caller
from agentbox.api.auth.ownership import check_agent
from agentbox.api.endpoints.sockets import AttachmentSocket
from agentbox.contracts.operations.agents import NewAgent
from agentbox.contracts.orchestrator import (
    MAX_RUN_SECONDS,
    AgentFilter,
    AgentHandle,
    AgentInfo,
    AgentSpec,
    ExitRecord,
    Orchestrator,
    RunResult,
)
from agentbox.core.http.problems import invalid
from agentbox.core.http.responses import EventStreamResponse, RecordResponse, header_list
from agentbox.core.http.sse import ServerSentEvent
from agentbox.core.records.page import Page
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import PermissionDenied


class AgentHandlers:
    """An agent may use the agents that it started. `closing` ends streams and attachments."""

    def __init__(self, orchestrator: Orchestrator, closing: asyncio.Event) -> None:
        self._orchestrator, self._closing = orchestrator, closing

    async def spawn(self, caller: Caller, spec: NewAgent, request_id: str) -> Response:
        program = AgentSpec(
            **{field.name: getattr(spec, field.name) for field in fields(AgentSpec)}
        )
        if agent_id := caller.agent_id:
            if spec.parent_id not in (None, agent_id):
                raise PermissionDenied(
                    "cannot start an agent for another caller", scope="agents:own"
                )
            program = replace(program, parent_id=agent_id)
        if spec.input is not None and spec.stdin != "pipe":
            raise invalid("/input", "needs a spec whose stdin is a pipe")
        handle = await self._orchestrator.spawn(program, request_id=request_id, stdin=spec.input)
        info = await self._orchestrator.get(handle.agent_id)
        location = header_list(("Location", f"/v1/agents/{handle.agent_id}"))
        return RecordResponse(info, 201, location)

    async def run_once(
        self, spec: AgentSpec, request_id: str, stdin: bytes, timeout_s: float, max_output: int
    ) -> RunResult:
        if not 0 < timeout_s <= MAX_RUN_SECONDS:
            raise invalid("/timeout_s", f"must be above 0 and at most {MAX_RUN_SECONDS:g}")
        return await self._orchestrator.run_once(
            spec, request_id=request_id, stdin=stdin, timeout_s=timeout_s, max_output=max_output
        )

    async def list(
        self, caller: Caller, filter: AgentFilter, limit: int, cursor: str | None
    ) -> Page[AgentInfo]:
        if caller.agent_id:
            filter = replace(filter, parent_id=caller.agent_id)
        return await self._orchestrator.list(filter, limit=limit, cursor=cursor)

    async def get(self, caller: Caller, agent_id: str) -> AgentInfo:
        info = await self._orchestrator.get(agent_id)
        check_agent(caller, info, allow_self=True)
        return info

    async def terminate(
        self, caller: Caller, handle: AgentHandle, grace_s: float | None
    ) -> ExitRecord:
        """The termination request is recorded as an event of the agent's run."""
        await self._check_parent(caller, handle.agent_id)
        with context.as_caller(context.CORE):
            session_id = (await self._orchestrator.get(handle.agent_id)).session_id
        with context.as_caller(replace(context.current(), session_id=session_id or None)):
            return await self._orchestrator.terminate(handle, grace_s=grace_s)

    async def attach(self, caller: Caller, handle: AgentHandle) -> AttachmentSocket:
        """A second client gets 409, before the upgrade."""
        await self._check_parent(caller, handle.agent_id)
        return AttachmentSocket(await self._orchestrator.attach(handle), self._closing)

    async def stream(self, caller: Caller, agent_id: str, since: int, follow: bool) -> Response:
        """An unknown agent is 404, and a trimmed cursor 410, before the first byte."""
        await self._check_parent(caller, agent_id)
        stored = self._orchestrator.stream(agent_id, since=since, follow=False)
        async with aclosing(stored) as items:  # type: ignore[type-var]
            await anext(aiter(items), None)
        return EventStreamResponse(self._events(agent_id, since, follow), self._closing)

    async def _events(
        self, agent_id: str, since: int, follow: bool
    ) -> AsyncIterator[ServerSentEvent]:
        async for item in self._orchestrator.stream(agent_id, since=since, follow=follow):
            yield ServerSentEvent(str(item.cursor), item.kind, to_wire(item))

    async def _check_parent(self, caller: Caller, agent_id: str) -> None:
        """Raises PermissionDenied for an agent that the calling agent did not start."""
        if caller.agent_id:
            check_agent(caller, await self._orchestrator.get(agent_id))
