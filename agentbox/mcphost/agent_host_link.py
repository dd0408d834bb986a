"""The connection to agent-host, made again when it was lost."""

import asyncio

import structlog

from agentbox.client.agent_host.connection import open_until_lost
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError, McpUnavailable
from agentbox.mcphost.sandbox_server import GRACE_SECONDS, LABEL

_RETRY_SECONDS = 0.5
_OPEN_SECONDS = 20.0
_PAGE = 500
log = structlog.get_logger()


class AgentHostLink:
    """`open` before use."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._host: AgentHost | None = None
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()

    @property
    def host(self) -> AgentHost:
        """Raises McpUnavailable while it is not connected."""
        if self._host is None:
            raise McpUnavailable("agent-host does not answer", hint="try again", server="")
        return self._host

    async def open(self) -> None:
        """Returns when it is connected and no sandbox of an earlier mcp-host is left. Raises
        AgentboxError if that takes longer than 20 seconds."""
        self._task = asyncio.create_task(self._run(), name="agent-host")
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._connected.wait()
        except TimeoutError as error:
            await self.close()
            raise AgentboxError(
                "cannot start mcp-host: agent-host does not answer", "agentbox logs agent-host"
            ) from error

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                async with open_until_lost(self._paths) as (host, wait_lost):
                    await _end_sandboxes(host)
                    self._host = host
                    self._connected.set()
                    await wait_lost()
            except (AdapterError, OSError) as error:
                log.warning("not connected to agent-host", reason=str(error))
            self._host = None
            await asyncio.sleep(_RETRY_SECONDS)


async def _end_sandboxes(host: AgentHost) -> None:
    """Those of servers whose connections ended with an earlier mcp-host."""
    cursor: str | None = None
    while True:
        page = await host.list_sandboxes(limit=_PAGE, cursor=cursor)
        for sandbox in page.items:
            if sandbox.exit is None and LABEL in sandbox.labels:
                await host.end_sandbox(sandbox.sandbox_id, grace_s=GRACE_SECONDS)
        if (cursor := page.next_cursor) is None:
            return
