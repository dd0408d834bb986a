"""Lifecycle of session-host: load, connect to agent-host, listen, notify, serve."""

import asyncio
import os
import secrets
import signal
import sys

import structlog

from agentbox.box.supervision.backoff import backoff
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.box.supervision.notify import notify, remove_note
from agentbox.box.supervision.program_failures import report_program_failure
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.client.agent_host.program_connection import ProgramConnection
from agentbox.core import logging
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.rpc.listener import RpcListener
from agentbox.core.rpc.session import Session
from agentbox.plan.model import Plan
from agentbox.plan.names import SESSION_HOST
from agentbox.sessions.config import LiveConfig
from agentbox.sessions.manager import SessionManager
from agentbox.sessions.service import Service
from agentbox.sessions.store import SessionStore

_log = structlog.get_logger()


def main() -> int:
    """Returns the exit code. Operator errors are one line on stderr."""
    paths = Paths.for_this_process()
    try:
        backoff(paths, SESSION_HOST)
        record = read_boot_record(paths)
        plan = record.load_plan() if record else load_plan(paths.plan)
        logging.configure(SESSION_HOST, plan.observability.log_level)
        asyncio.run(serve(plan, paths))
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        report_program_failure(paths, SESSION_HOST, error)
        return int(error.exit_code)
    return 0


async def serve(plan: Plan, paths: Paths) -> None:
    """Until SIGTERM or SIGINT; agents go on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    connection = ProgramConnection(paths, SESSION_HOST, dict)
    await connection.open()
    store = SessionStore(paths.sessions)
    await store.open()
    manager = SessionManager(agent_host_client(lambda: connection), store, LiveConfig(plan, paths))
    try:
        await manager.start()
        service = Service(manager=manager, token=_new_token(paths))
        await _serve_connections(service, paths, stop)
    finally:
        await manager.close()
        await store.close()
        await connection.close()


async def _serve_connections(service: Service, paths: Paths, stop: asyncio.Event) -> None:
    serving: set[asyncio.Task[None]] = set()

    def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(Session(service, reader, writer).serve())
        serving.add(task)
        task.add_done_callback(serving.discard)

    paths.session_host_socket.unlink(missing_ok=True)
    listener = RpcListener(paths.session_host_socket, on_connect)
    notify(paths, SESSION_HOST)
    _log.info("listening")
    await stop.wait()
    remove_note(paths, SESSION_HOST)
    await listener.close()
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)


def _new_token(paths: Paths) -> str:
    """A token for this start, 0400: the API reads it with each connection."""
    token, path = secrets.token_hex(32), paths.session_host_token
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    staged = path.with_suffix(".new")
    staged.unlink(missing_ok=True)
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(token)
    staged.rename(path)
    return token
