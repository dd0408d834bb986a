# Written by tools/client_operations.py from agentbox/contracts.

"""Agents of a box."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agentbox.client.transport import (
    decode,
    decode_event,
    idempotency_header,
    wire_form,
    without_none,
)

if TYPE_CHECKING:
    from agentbox.client.async_client.attach import AsyncAttached
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.orchestrator import (
        AgentInfo,
        AgentSpec,
        ExitRecord,
        RunResult,
        StreamItem,
    )
    from agentbox.core.records.page import Page


class AsyncAgentsClient:
    """Agents of a box. A spec is an AgentSpec, or its JSON. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def spawn(
        self,
        spec: AgentSpec | Mapping[str, Any],
        *,
        input: bytes | None = None,
        request_id: str = "",
    ) -> AgentInfo:
        """Starts an agent. `Idempotency-Key` is the request id: repeating it returns the same
        agent. The same `request_id` has one effect."""
        from agentbox.contracts.orchestrator import AgentInfo

        response = await self._box.request(
            "spawn",
            body={**wire_form(spec), **without_none({"input": input})},
            headers=idempotency_header(request_id),
        )
        return decode(AgentInfo, response)

    async def run_once(
        self,
        spec: AgentSpec | Mapping[str, Any],
        *,
        request_id: str = "",
        stdin: bytes = b"",
        timeout_s: float = 600,
        max_output: int = 1048576,
    ) -> RunResult:
        """Runs a program to completion and returns its output. The same `request_id` has one
        effect."""
        from agentbox.contracts.orchestrator import RunResult

        response = await self._box.request(
            "run_once",
            body={"spec": spec, "stdin": stdin, "timeout_s": timeout_s, "max_output": max_output},
            headers=idempotency_header(request_id),
            wait_s=timeout_s + 10,
        )
        return decode(RunResult, response)

    async def list(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        parent_id: str | None = None,
        label: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[AgentInfo]:
        """Agents by filter."""
        from agentbox.contracts.orchestrator import AgentInfo
        from agentbox.core.records.page import Page

        response = await self._box.request(
            "list_agents",
            query={
                "state": state,
                "name": name,
                "parent_id": parent_id,
                "label": label,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return decode(Page[AgentInfo], response)

    async def get(self, agent_id: str) -> AgentInfo:
        """One agent."""
        from agentbox.contracts.orchestrator import AgentInfo

        response = await self._box.request("get_agent", {"id": agent_id})
        return decode(AgentInfo, response)

    async def stream(
        self, agent_id: str, *, since: int = 0, follow: bool = True, reconnect_timeout: float = 60.0
    ) -> AsyncIterator[StreamItem]:
        """Output and state of an agent, from the start or after `since` or Last-Event-ID."""
        from agentbox.contracts.orchestrator import StreamItem

        events = self._box.stream(
            "stream_agent",
            {"id": agent_id},
            query={"since": since, "follow": follow},
            reconnect_timeout=reconnect_timeout,
        )
        async for event in events:
            yield decode_event(StreamItem, event)

    async def signal(self, agent_id: str, generation: int, signal: str) -> None:
        """Sends a signal to the agent's tree."""
        await self._box.request(
            "signal_agent", {"id": agent_id}, body={"generation": generation, "signal": signal}
        )

    async def terminate(
        self, agent_id: str, generation: int, *, grace_s: float | None = None
    ) -> ExitRecord:
        """Ends an agent's process tree; returns the exit record."""
        from agentbox.contracts.orchestrator import ExitRecord

        response = await self._box.request(
            "terminate_agent",
            {"id": agent_id},
            query={"generation": generation, "grace_s": grace_s},
            wait_s=(60 if grace_s is None else grace_s) + 10,
        )
        return decode(ExitRecord, response)

    async def revoke(self, agent_id: str, grant_id: str) -> AgentInfo:
        """Revokes a grant, of all descendants of the agent too; returns the agent."""
        from agentbox.contracts.orchestrator import AgentInfo

        response = await self._box.request("revoke_grant", {"id": agent_id, "grant_id": grant_id})
        return decode(AgentInfo, response)

    @asynccontextmanager
    async def attach(self, agent_id: str, generation: int) -> AsyncIterator[AsyncAttached]:
        """A WebSocket on the agent's pipes, one client at a time: binary messages are bytes of
        stdin and stdout, an empty one closes stdin, a text message is a problem. It ends with the
        agent's output."""
        attached = await self._box.open_socket(
            "attach_agent", {"id": agent_id}, query={"generation": generation}
        )
        try:
            yield attached
        finally:
            await attached.aclose()
