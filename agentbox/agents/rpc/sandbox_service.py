"""Operations of `AgentHost` about sandboxes: their programs and files, and those of sessions."""

import asyncio
from collections.abc import Mapping
from typing import Any

from agentbox.adapters.runtime import context
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.rpc.host_orchestrator import make_requester
from agentbox.agents.rpc.program_access import owns
from agentbox.agents.sandboxes.manager import SandboxManager
from agentbox.agents.sandboxes.session_config import session_config
from agentbox.contracts.orchestrator import Signal
from agentbox.contracts.sandboxes import (
    ExecResult,
    FileChunk,
    NewSandbox,
    Sandbox,
    SandboxChanges,
    SessionSandbox,
)
from agentbox.core.records.page import Page
from agentbox.core.rpc.session import hold_until_reply

_LARGE_RESULT = 256 << 10  # bytes of output
_Document = Mapping[str, Any]


class SandboxService:
    """A program of the box sees those that it made."""

    def __init__(self, host: HostState, sandboxes: SandboxManager) -> None:
        self._host, self._sandboxes = host, sandboxes
        self._large_results = asyncio.Lock()

    async def create_sandbox(self, sandbox: NewSandbox, *, request_id: str) -> Sandbox:
        return await self._sandboxes.create(sandbox, make_requester(request_id))

    async def read_session_config(self) -> _Document:
        config = self._host.config = self._host.live_config.apply(self._host.config)
        return session_config(config)

    async def create_session_sandbox(self, sandbox: SessionSandbox, *, request_id: str) -> Sandbox:
        return await self._sandboxes.create_of_session(sandbox, make_requester(request_id))

    async def suspend_sandbox(self, sandbox_id: str, *, grace_s: float | None) -> Sandbox:
        """Continues if the caller is cancelled."""
        suspending = self._sandboxes.suspend(sandbox_id, grace_s)
        return await asyncio.shield(asyncio.create_task(suspending))

    async def resume_sandbox(self, sandbox_id: str) -> Sandbox:
        """Continues if the caller is cancelled."""
        resuming = self._sandboxes.resume(sandbox_id, make_requester(f"resume:{sandbox_id}"))
        return await asyncio.shield(asyncio.create_task(resuming))

    async def show_changes(self, sandbox_id: str) -> SandboxChanges:
        return await self._sandboxes.changes(sandbox_id)

    async def review_sandbox(self, sandbox_id: str) -> bool:
        return await self._sandboxes.review(sandbox_id)

    async def list_sandboxes(self, *, limit: int, cursor: str | None) -> Page[Sandbox]:
        return self._sandboxes.page(limit, cursor, self._is_visible)

    async def get_sandbox(self, sandbox_id: str) -> Sandbox:
        return self._sandboxes.get(sandbox_id)

    async def end_sandbox(self, sandbox_id: str, *, grace_s: float | None) -> Sandbox:
        """Continues if the caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._sandboxes.end(sandbox_id, grace_s)))

    async def exec_sandbox(
        self,
        sandbox_id: str,
        argv: tuple[str, ...],
        *,
        request_id: str,
        cwd: str,
        env: Mapping[str, str] | None,
        stdin: bytes | None,
        interactive: bool,
        timeout_s: float,
        max_output: int,
        detach: bool,
    ) -> ExecResult:
        """Large results are read and sent one after another."""
        running = self._sandboxes.exec(
            sandbox_id,
            argv,
            requester=make_requester(request_id),
            cwd=cwd,
            env=env or {},
            stdin=stdin,
            interactive=interactive,
            timeout_s=timeout_s,
            max_output=max_output,
            detach=detach,
        )
        async with running as run:
            if run.result_size > _LARGE_RESULT:
                await hold_until_reply(self._large_results)
            return run.result()

    async def signal_exec(self, sandbox_id: str, n: int, signal: Signal) -> None:
        self._sandboxes.signal(sandbox_id, n, signal)

    async def end_exec(self, sandbox_id: str, n: int, *, grace_s: float) -> None:
        self._sandboxes.find(sandbox_id, n).terminate(grace_s)

    async def write_exec_stdin(
        self, sandbox_id: str, n: int, *, data: bytes, eof: bool, at: int | None
    ) -> None:
        await self._sandboxes.find(sandbox_id, n).write_stdin(data, eof=eof, at=at)

    async def read_sandbox_file(
        self, sandbox_id: str, path: str, *, offset: int, size: int
    ) -> FileChunk:
        files = self._sandboxes.files(sandbox_id)
        return await asyncio.to_thread(files.read, path, offset, size)

    async def write_sandbox_file(
        self, sandbox_id: str, path: str, *, upload: str, data: bytes, last: bool
    ) -> None:
        files = self._sandboxes.files(sandbox_id)
        staged = self._sandboxes.upload_path(sandbox_id, upload)
        await asyncio.to_thread(files.write, path, staged, data, last=last)

    async def remove_sandbox_file(self, sandbox_id: str, path: str) -> None:
        await asyncio.to_thread(self._sandboxes.files(sandbox_id).remove, path)

    def _is_visible(self, agent_id: str) -> bool:
        """Whether a list shows it to the current caller."""
        return owns(self._host, context.current().program, agent_id)
