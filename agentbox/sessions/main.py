"""Lifecycle of session-host: connect to agent-host, load, listen, serve."""

import asyncio
import signal
import sys

import structlog

from agentbox.adapters.orchestrator.caller_params import current_caller
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.client.agent_host.program_connection import ProgramConnection
from agentbox.core import logging
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.rpc.listener import RpcListener
from agentbox.core.rpc.session import Session
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.plan.names import SESSION_HOST
from agentbox.sessions.config import LiveConfig
from agentbox.sessions.manager import SessionManager
from agentbox.sessions.service import Service
from agentbox.sessions.store import SessionStore

_RETRY_SECONDS = 0.5
_REFRESH_SECONDS = 15.0
_log = structlog.get_logger()


def main() -> int:
    """Returns the exit code. Operator errors are one line on stderr."""
    paths = Paths.for_this_process()
    try:
        logging.configure(SESSION_HOST, "info")
        asyncio.run(serve(paths))
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return int(error.exit_code)
    return 0


async def serve(paths: Paths) -> None:
    """Until SIGTERM or SIGINT; agents go on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    connection = ProgramConnection(paths, SESSION_HOST, current_caller)
    host = agent_host_client(lambda: connection)
    await _connect(connection)
    config = LiveConfig(host, paths.branches)
    await config.load()
    logging.configure(SESSION_HOST, config.log_level)
    store = SessionStore(paths.sessions)
    await store.open()
    manager = SessionManager(host, store, config)
    refreshing = asyncio.create_task(_refresh(config), name="configuration")
    try:
        await manager.start()
        service = Service(
            manager=manager,
            config=config,
            token_file=paths.api_token(SESSION_HOST),
        )
        await _serve_connections(service, paths, stop)
    finally:
        refreshing.cancel()
        await manager.close()
        await store.close()
        await connection.close()


async def _refresh(config: LiveConfig) -> None:
    """For what happens without a call: idle sessions are suspended, old ones closed."""
    while True:
        await asyncio.sleep(_REFRESH_SECONDS)
        await config.refresh()


async def _connect(connection: ProgramConnection) -> None:
    """agent-host may start later, and its token with it."""
    while True:
        try:
            await connection.open()
        except (SlotUnavailable, FileNotFoundError) as error:
            _log.info("waiting for agent-host", reason=str(error))
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


async def _serve_connections(service: Service, paths: Paths, stop: asyncio.Event) -> None:
    serving: set[asyncio.Task[None]] = set()

    def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(Session(service, reader, writer).serve())
        serving.add(task)
        task.add_done_callback(serving.discard)

    paths.session_host_run.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths.session_host_socket.unlink(missing_ok=True)
    listener = RpcListener(paths.session_host_socket, on_connect)
    _log.info("listening")
    await stop.wait()
    await listener.close()
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)
