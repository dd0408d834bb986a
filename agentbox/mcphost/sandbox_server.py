"""Starts a server: a sandbox of its own, in which its program runs on open pipes. For an http
server that is the bridge, so that what it sends is received there, under its own rights.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.mcp import AGENT_LABEL, SERVER_LABEL
from agentbox.contracts.orchestrator import MAX_RUN_SECONDS
from agentbox.contracts.sandboxes import NewSandbox
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import AdapterError, McpUnavailable
from agentbox.mcphost.connection import Streams
from agentbox.mcphost.exec_transport import ExecTransport
from agentbox.mcphost.results import MAX_RESULT
from agentbox.plan.tables import McpServerPlan

GRACE_SECONDS = 2.0
_PYTHON = "/usr/bin/python3"  # of the image
_KEPT_OUTPUT = 4 << 20  # bytes that agent-host keeps until they are read
_OVERHEAD = 256 << 10  # bytes of a message beside the result


class SandboxServer:
    """A `Transport`. `agent_id` names the agent that it serves, "" for all."""

    def __init__(self, host: AgentHost, name: str, row: McpServerPlan, agent_id: str) -> None:
        self._host, self._name, self._row, self._agent_id = host, name, row, agent_id
        self._pipes: ExecTransport | None = None
        self.ended = asyncio.Event()

    @property
    def reason(self) -> str:
        return "" if self._pipes is None else self._pipes.reason

    @property
    def stderr(self) -> bytes:
        return b"" if self._pipes is None else self._pipes.stderr

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """Ends the sandbox when it is left. Raises McpUnavailable."""
        try:
            sandbox_id, n = await self._start()
        except AdapterError as error:
            raise McpUnavailable(
                f"cannot start the MCP server {self._name}: {error.message}",
                hint=error.hint,
                server=self._name,
            ) from error
        try:
            self._pipes = ExecTransport(
                self._host,
                sandbox_id,
                n,
                _max_line(self._row),
                self.ended,
                first=_bridge_config(self._row) if self._row.transport == "http" else b"",
            )
            async with self._pipes.open() as streams:
                yield streams
        finally:
            self.ended.set()
            await asyncio.shield(asyncio.ensure_future(self._end(sandbox_id)))

    async def _start(self) -> tuple[str, int]:
        """Sandbox and number of the program."""
        sandbox = await self._host.create_sandbox(
            NewSandbox(
                name=f"mcp-{self._name}",
                labels={SERVER_LABEL: self._name, AGENT_LABEL: self._agent_id},
            ),
            request_id=uuid7(),
        )
        try:
            started = await self._host.exec_sandbox(
                sandbox.sandbox_id,
                _command(self._row),
                request_id=uuid7(),
                cwd="",
                env={},
                stdin=None,
                interactive=True,
                timeout_s=MAX_RUN_SECONDS,
                max_output=max(_KEPT_OUTPUT, _max_line(self._row)),
                detach=True,
            )
        except AdapterError:
            await self._end(sandbox.sandbox_id)
            raise
        return sandbox.sandbox_id, started.n

    async def _end(self, sandbox_id: str) -> None:
        """Agent-host ends it by itself if it does not answer: its time is limited."""
        with contextlib.suppress(AdapterError):
            await self._host.end_sandbox(sandbox_id, grace_s=GRACE_SECONDS)


def _max_line(row: McpServerPlan) -> int:
    """Bytes of the longest message."""
    return min(row.max_result, MAX_RESULT) + _OVERHEAD


def _command(row: McpServerPlan) -> tuple[str, ...]:
    if row.transport == "stdio":
        return (*row.command, *row.args)
    return (_PYTHON, "-I", "-c", _bridge())


def _bridge_config(row: McpServerPlan) -> bytes:
    """Over its input, since every program of the box can read its command line."""
    headers = {name: vars(header) for name, header in row.headers.items()}
    token = row.env_var if row.auth == "bearer" else ""
    config = {"url": row.url, "max_bytes": _max_line(row), "token": token, "headers": headers}
    return json.dumps(config).encode() + b"\n"


@cache
def _bridge() -> str:
    """The source of the bridge: a sandbox need not see the packages of the box."""
    spec = find_spec("agentbox.mcphost.http_bridge")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")
