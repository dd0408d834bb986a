"""Lifecycle of agent-host: load, end orphaned processes, listen, notify, serve, end every agent."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator

import structlog

from agentbox.agents import stop_order
from agentbox.agents.canaries import SandboxCanaryRunner
from agentbox.agents.config import HostConfig
from agentbox.agents.registry import reconcile
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.store import AgentStore
from agentbox.agents.rpc.agent_host_service import AgentHostService
from agentbox.agents.rpc.host_orchestrator import HostOrchestrator
from agentbox.agents.rpc.methods import METHODS
from agentbox.agents.rpc.program_access import NO_PROGRAMS, ProgramTokens
from agentbox.agents.rpc.service import CAPABILITIES, Service
from agentbox.agents.runs.one_shot import OneShotRuns
from agentbox.agents.sandboxes.manager import SandboxManager
from agentbox.box.supervision.backoff import backoff
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.box.supervision.notify import notify, remove_note
from agentbox.box.supervision.program_failures import report_program_failure
from agentbox.box.supervision.secrets import read_text
from agentbox.core import logging
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.rpc.listener import RpcListener
from agentbox.core.rpc.session import Session

PROGRAM = "agent-host"
log = structlog.get_logger()


def main() -> int:
    """Return the exit code. Operator errors are one line on stderr."""
    paths = Paths.for_this_process()
    try:
        backoff(paths, PROGRAM)
        record = read_boot_record(paths)
        config = HostConfig.from_plan(
            record.load_plan() if record else load_plan(paths.plan), paths
        )
        logging.configure(PROGRAM, config.log_level)
        asyncio.run(serve(config))
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        report_program_failure(paths, PROGRAM, error)
        return int(error.exit_code)
    return 0


async def serve(config: HostConfig) -> None:
    """Return after SIGTERM, SIGINT or the method `shutdown`, when no agent runs any more."""
    programs = ProgramTokens.write(config.paths, config.programs)
    async with open_service(config, token=_token(config.paths), programs=programs) as service:
        await _serve_connections(service)


@contextlib.asynccontextmanager
async def open_service(
    config: HostConfig,
    *,
    token: str | None,
    programs: ProgramTokens = NO_PROGRAMS,
    capabilities: tuple[str, ...] = CAPABILITIES,
) -> AsyncIterator[Service]:
    """A host with the state of its predecessor, whose processes are ended. Serves nothing yet."""
    store = AgentStore(config.state_dir, config.store_record)
    await store.open()
    try:
        host = HostState(config, store, await reconcile.load_mark(store))
        registry = AgentRegistry(host)
        await registry.load()
        is_restart = await reconcile.is_restart(store)
        if remaining := await asyncio.to_thread(
            reconcile.end_orphans, registry, config, is_restart=is_restart
        ):
            log.error("orphaned processes do not exit", pids=remaining)
        await asyncio.to_thread(reconcile.remove_private_dirs, registry, config)
        await host.approvals.load()
        await host.reviews.load(
            frozenset(entry.agent_id for entry in registry.entries.values() if not entry.over)
        )
        expiry = asyncio.create_task(registry.revoker.run(), name="ends-of-grants")
        canaries, sandboxes = SandboxCanaryRunner(host), SandboxManager(registry)
        yield Service(
            host=host,
            registry=registry,
            canaries=canaries,
            agents=HostOrchestrator(registry, OneShotRuns(registry)),
            services=AgentHostService(host, canaries, sandboxes),
            sandboxes=sandboxes,
            methods=METHODS,
            token=token,
            programs=programs,
            capabilities=capabilities,
        )
        expiry.cancel()
        await asyncio.gather(expiry, return_exceptions=True)
        await host.launcher.close()
    finally:
        await store.close()


async def _serve_connections(service: Service) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.stop.set)
    paths = service.host.config.paths
    sessions: dict[asyncio.Task[None], Session[Service]] = {}

    def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(service, reader, writer)
        task = asyncio.create_task(session.serve())
        sessions[task] = session
        task.add_done_callback(sessions.pop)

    def callers() -> set[asyncio.Task[None]]:
        return {task for task, session in sessions.items() if not session.is_watch_only}

    paths.agent_host_socket.unlink(missing_ok=True)
    listener = RpcListener(paths.agent_host_socket, on_connect)
    reconcile.resume_agents(service.registry)
    notify(paths, PROGRAM)
    service.host.launcher.start()
    canaries = asyncio.create_task(service.canaries.run(), name="canaries")
    log.info("listening", agents=len(service.registry.runners))
    await service.stop.wait()
    deadline = loop.time() + stop_order.LINGER_SECONDS
    remove_note(paths, PROGRAM)
    service.registry.closing = True
    canaries.cancel()
    await asyncio.wait([canaries])
    box_stops = await stop_order.wait_for_requests(service.registry, paths, callers())
    await service.registry.close()
    if box_stops:
        await stop_order.wait_for_disconnects(callers(), deadline)
    await listener.close()
    for task in sessions:
        task.cancel()
    await asyncio.gather(*sessions, return_exceptions=True)


def _token(paths: Paths) -> str:
    """The per-boot token: read if it exists, else created, 0400."""
    path = paths.token(PROGRAM)
    if not path.exists():
        descriptor = os.open(
            path.with_suffix(".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o400
        )
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(32))
        path.with_suffix(".new").rename(path)
    return read_text(
        path, "the token of agent-host", "Restart the box: each boot creates a new token."
    )
