"""Lifecycle of mcp-host: load, end what an earlier one left, listen, notify, serve, end all
servers.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from logging import CRITICAL, getLogger

import structlog

from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.core import logging
from agentbox.core.background.tasks import log_failures
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.rpc.listener import RpcListener
from agentbox.core.rpc.session import Session
from agentbox.mcphost.agent_host_link import open_link
from agentbox.mcphost.config import McpConfig
from agentbox.mcphost.host import McpService
from agentbox.mcphost.pool import ServerPool
from agentbox.mcphost.rpc import RpcService
from agentbox.mcphost.sandbox_server import SandboxServer
from agentbox.mcphost.store import McpStore
from agentbox.mcphost.tool_catalogue import ToolCatalogue
from agentbox.plan.model import Plan
from agentbox.plan.names import MCP_HOST

log = structlog.get_logger()


def main() -> int:
    """Returns the exit code. An operator error is one line on stderr."""
    paths = Paths.for_this_process()
    try:
        plan = _plan(paths)
        logging.configure(MCP_HOST, plan.observability.log_level)
        getLogger("mcp").setLevel(CRITICAL)  # it logs what servers send
        asyncio.run(serve(McpConfig.from_plan(plan), paths))
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return int(error.exit_code)
    return 0


async def serve(config: McpConfig, paths: Paths) -> None:
    """Returns after SIGTERM or SIGINT, when no server runs any more. Raises SlotUnavailable if
    agent-host does not answer."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    store = McpStore(paths.slot(MCP_HOST))
    async with contextlib.AsyncExitStack() as stack:
        await store.open()
        stack.push_async_callback(store.close)
        host = await stack.enter_async_context(open_link(paths))
        pool = ServerPool(
            config, lambda name, row, agent_id: SandboxServer(host, name, row, agent_id)
        )
        service = McpService(config, store, pool, ToolCatalogue(config, store))
        stack.push_async_callback(service.close)
        await _serve_connections(RpcService(service, _new_token(paths)), pool, paths, stop)


async def _serve_connections(
    rpc: RpcService, pool: ServerPool, paths: Paths, stop: asyncio.Event
) -> None:
    sessions: set[asyncio.Task[None]] = set()

    def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(Session(rpc, reader, writer).serve())
        sessions.add(task)
        task.add_done_callback(sessions.discard)

    paths.mcp_host_socket.unlink(missing_ok=True)
    listener = RpcListener(paths.mcp_host_socket, on_connect)
    idle = asyncio.create_task(pool.end_idle(), name="idle-servers")
    idle.add_done_callback(log_failures(idle.get_name()))
    log.info("listening", servers=len(pool.config.servers))
    await stop.wait()
    await listener.close()
    for task in (idle, *sessions):
        task.cancel()
    await asyncio.gather(idle, *sessions, return_exceptions=True)


def _plan(paths: Paths) -> Plan:
    record = read_boot_record(paths)
    return record.load_plan() if record else load_plan(paths.plan)


def _new_token(paths: Paths) -> str:
    """The token of this boot, 0400; a restarted program keeps it."""
    path = paths.mcp_host_token
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists():
        return path.read_text(encoding="ascii")
    token, new = secrets.token_hex(32), path.with_suffix(".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(token)
    new.rename(path)
    return token
