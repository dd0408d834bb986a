"""Lifecycle of mcp-host: load, end what an earlier one left, listen, notify, serve, end all
servers.
"""

import asyncio
import os
import secrets
import signal
import sys

import structlog

from agentbox.box.supervision.applied_plan import applied_version, plan_in_force
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.box.supervision.notify import notify, remove_note
from agentbox.core import logging
from agentbox.core.background.tasks import log_failures
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.rpc.listener import RpcListener
from agentbox.core.rpc.session import Session
from agentbox.mcphost.agent_host_link import AgentHostLink
from agentbox.mcphost.config import McpConfig
from agentbox.mcphost.host import McpService
from agentbox.mcphost.pool import ServerPool
from agentbox.mcphost.rpc import RpcService
from agentbox.mcphost.sandbox_server import SandboxServer
from agentbox.mcphost.store import McpStore
from agentbox.mcphost.tool_catalogue import ToolCatalogue
from agentbox.plan.model import Plan
from agentbox.plan.names import MCP_HOST

_PLAN_SECONDS = 1.0  # between looks at the applied plan
log = structlog.get_logger()


def main() -> int:
    """Returns the exit code. An operator error is one line on stderr."""
    paths = Paths.for_this_process()
    try:
        config = McpConfig.from_plan(_plan(paths), paths)
        logging.configure(MCP_HOST, config.log_level)
        asyncio.run(serve(config))
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return int(error.exit_code)
    return 0


async def serve(config: McpConfig) -> None:
    """Returns after SIGTERM or SIGINT, when no server runs any more."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    paths, link = config.paths, AgentHostLink(config.paths)
    store = McpStore(config.directory)
    await store.open()
    pool = ServerPool(
        config, lambda name, row, agent_id: SandboxServer(link.host, name, row, agent_id)
    )
    service = McpService(config, store, pool, ToolCatalogue(config, store))
    sessions: set[asyncio.Task[None]] = set()
    rpc = RpcService(service, _new_token(paths))

    def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(Session(rpc, reader, writer).serve())
        sessions.add(task)
        task.add_done_callback(sessions.discard)

    paths.mcp_host_socket.unlink(missing_ok=True)
    await link.open()
    listener = RpcListener(paths.mcp_host_socket, on_connect)
    background = [
        asyncio.create_task(pool.end_idle(), name="idle-servers"),
        asyncio.create_task(_follow_plan(service, paths), name="live-configuration"),
    ]
    for task in background:
        task.add_done_callback(log_failures(task.get_name()))
    notify(paths, MCP_HOST)
    log.info("listening", servers=len(config.servers))
    try:
        await stop.wait()
        remove_note(paths, MCP_HOST)
    finally:
        await listener.close()
        for waiting in (*background, *sessions):
            waiting.cancel()
        await asyncio.gather(*background, *sessions, return_exceptions=True)
        await service.close()
        await link.close()
        await store.close()


async def _follow_plan(service: McpService, paths: Paths) -> None:
    """Puts each applied plan in force."""
    version = applied_version(paths)
    while True:
        await asyncio.sleep(_PLAN_SECONDS)
        if (current := applied_version(paths)) == version:
            continue
        version = current
        try:
            plan = _plan(paths)
        except AgentboxError as error:
            log.error("cannot load the applied plan", reason=error.message)
            continue
        await service.replace_config(McpConfig.from_plan(plan, paths))


def _plan(paths: Paths) -> Plan:
    record = read_boot_record(paths)
    return plan_in_force(paths, record.load_plan() if record else load_plan(paths.plan))


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
