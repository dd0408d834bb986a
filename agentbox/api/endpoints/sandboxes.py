"""Sandboxes over HTTP, forwarded to the agent host, which runs them."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from starlette.responses import Response

from agentbox.api.endpoints.sockets import AttachmentSocket
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.orchestrator import Signal
from agentbox.contracts.sandboxes import ExecResult, NewSandbox, Sandbox
from agentbox.core.http.responses import EventStreamResponse, RecordResponse, header_list
from agentbox.core.http.sse import ServerSentEvent
from agentbox.core.records.page import Page
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import CursorExpired, NotFound

_STDIN_PART = 256 << 10  # bytes of one call of agent-host
_NUMBER = re.compile("[1-9][0-9]{0,8}")


class SandboxHandlers:
    """Raises SlotUnavailable without an agent host of this release. `closing` ends streams."""

    def __init__(self, host: AgentHost, closing: asyncio.Event) -> None:
        self._host, self._closing = host, closing

    async def create(self, sandbox: NewSandbox, request_id: str) -> Response:
        created = await self._host.create_sandbox(sandbox, request_id=request_id)
        location = header_list(("Location", f"/v1/sandboxes/{created.sandbox_id}"))
        return RecordResponse(created, 201, location)

    async def list(self, limit: int, cursor: str | None) -> Page[Sandbox]:
        return await self._host.list_sandboxes(limit=limit, cursor=cursor)

    async def show(self, sandbox_id: str) -> Sandbox:
        return await self._host.get_sandbox(sandbox_id)

    async def end(self, sandbox_id: str, grace_s: float | None) -> Sandbox:
        return await self._host.end_sandbox(sandbox_id, grace_s=grace_s)

    async def exec(
        self,
        sandbox_id: str,
        argv: tuple[str, ...],
        request_id: str,
        cwd: str,
        env: Mapping[str, str] | None,
        stdin: bytes | None,
        interactive: bool,
        timeout_s: float,
        max_output: int,
        detach: bool,
    ) -> ExecResult:
        return await self._host.exec_sandbox(
            sandbox_id,
            argv,
            request_id=request_id,
            cwd=cwd,
            env=env,
            stdin=stdin,
            interactive=interactive,
            timeout_s=timeout_s,
            max_output=max_output,
            detach=detach,
        )

    async def stream(self, sandbox_id: str, n: str, since: int, follow: bool) -> Response:
        """An unknown program is 404, and a trimmed cursor 410, before the first byte."""
        number = _number(n)
        stored = self._host.stream_exec(sandbox_id, number, since=since, follow=False)
        async with aclosing(stored) as items:  # type: ignore[type-var]
            await anext(aiter(items), None)
        return EventStreamResponse(self._events(sandbox_id, number, since, follow), self._closing)

    async def signal(self, sandbox_id: str, n: str, signal: Signal) -> None:
        await self._host.signal_exec(sandbox_id, _number(n), signal)

    async def attach(self, sandbox_id: str, n: str) -> AttachmentSocket:
        """A program without an open stdin is 409, before the upgrade."""
        number = _number(n)
        await self._host.write_exec_stdin(sandbox_id, number, data=b"", eof=False)
        return AttachmentSocket(ExecAttachment(self._host, sandbox_id, number), self._closing)

    async def _events(
        self, sandbox_id: str, n: int, since: int, follow: bool
    ) -> AsyncIterator[ServerSentEvent]:
        async for item in self._host.stream_exec(sandbox_id, n, since=since, follow=follow):
            yield ServerSentEvent(str(item.cursor), item.kind, to_wire(item))


class ExecAttachment:
    """An `Attachment` to one program. Several clients get the same output."""

    def __init__(self, host: AgentHost, sandbox_id: str, n: int) -> None:
        self._host, self._sandbox_id, self._n = host, sandbox_id, n

    async def send(self, data: bytes) -> None:
        """Raises InvalidTransition once the program has ended or closed its stdin."""
        for offset in range(0, len(data), _STDIN_PART):
            part = data[offset : offset + _STDIN_PART]
            await self._host.write_exec_stdin(self._sandbox_id, self._n, data=part, eof=False)

    async def close_stdin(self) -> None:
        await self._host.write_exec_stdin(self._sandbox_id, self._n, data=b"", eof=True)

    async def aclose(self) -> None:
        """The program runs on, and its stdin stays open."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        items = self._host.stream_exec(self._sandbox_id, self._n, since=0, follow=True)
        async with aclosing(items) as following:  # type: ignore[type-var]
            async for item in following:
                if item.kind == "state":
                    raise CursorExpired(
                        "cannot continue: output was dropped before it was read",
                        oldest=item.cursor,
                    )
                if item.kind == "stdout":
                    yield item.data


def _number(n: str) -> int:
    if not _NUMBER.fullmatch(n):
        raise NotFound("cannot find this program", resource="exec", id=n)
    return int(n)
