"""agent-host from its start to its end: load, end leftovers, listen, notify, serve, end every agent."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator

import structlog

from agentbox.agents import shutdown
from agentbox.agents.canaries import Canaries
from agentbox.agents.config import HostConfig
from agentbox.agents.registry import reconcile
from agentbox.agents.registry.host import Host
from agentbox.agents.registry.store import Store
from agentbox.agents.registry.table import Table
from agentbox.agents.rpc.listener import Door
from agentbox.agents.rpc.service import CAPABILITIES, Service
from agentbox.agents.runs.runs import Runs
from agentbox.box.supervision.backoff import backoff
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.box.supervision.failing import tell_failed
from agentbox.box.supervision.notify import notify, withdraw
from agentbox.box.supervision.secrets import text_of
from agentbox.core import logging
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.rpc.session import Session

PROGRAM = "agent-host"
log = structlog.get_logger()


def main() -> int:
    """The exit code. An error of the operator's making is one line on stderr."""
    paths = Paths.of_this_process()
    try:
        backoff(paths, PROGRAM)
        record = read_boot_record(paths)
        config = HostConfig.from_plan(record.load_plan() if record else load_plan(paths.plan), paths)
        logging.configure(PROGRAM, config.log_level)
        asyncio.run(serve(config))
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        tell_failed(paths, PROGRAM, error)
        return int(error.exit_code)
    return 0


async def serve(config: HostConfig) -> None:
    """Returns after SIGTERM, SIGINT or the method `shutdown`, when no agent lives any more."""
    async with loaded(config, token=_token(config.paths)) as service:
        await _answer(service)


@contextlib.asynccontextmanager
async def loaded(
    config: HostConfig, *, token: str | None, capabilities: tuple[str, ...] = CAPABILITIES
) -> AsyncIterator[Service]:
    """A host with what an earlier process of it kept; what that one left running is ended. Nothing is answered yet."""
    store = Store(config.state, config.record)
    await store.open()
    try:
        host = Host(config, store, await reconcile.mark_of(store))
        table = Table(host)
        await table.load()
        again = await reconcile.second_start(store)
        if left := await asyncio.to_thread(reconcile.end_leftovers, table, config, again=again):
            log.error("leftovers do not end", pids=left)
        await asyncio.to_thread(reconcile.end_folders, table, config)
        await host.approvals.load()
        await host.reviews.load(frozenset(one.agent_id for one in table.entries.values() if not one.over))
        ending = asyncio.create_task(table.revoking.end_in_time(), name="ends-of-grants")
        yield Service(
            host=host, table=table, runs=Runs(table), canaries=Canaries(host), token=token, capabilities=capabilities
        )
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
        await host.launcher.close()
    finally:
        await store.close()


async def _answer(service: Service) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.stop.set)
    paths = service.host.config.paths
    sessions: dict[asyncio.Task[None], Session[Service]] = {}

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(service, reader, writer)
        task = asyncio.create_task(session.serve())
        sessions[task] = session
        task.add_done_callback(sessions.pop)

    def callers() -> set[asyncio.Task[None]]:
        return {task for task, session in sessions.items() if not session.only_follows}

    paths.agent_host_socket.unlink(missing_ok=True)
    door = Door(paths.agent_host_socket, connected)
    reconcile.settle(service.table)
    notify(paths, PROGRAM)
    service.host.launcher.start()
    canaries = asyncio.create_task(service.canaries.run(), name="canaries")
    log.info("listening", agents=len(service.table.lives))
    await service.stop.wait()
    deadline = loop.time() + shutdown.STAY_SECONDS
    withdraw(paths, PROGRAM)
    service.table.closing = True
    canaries.cancel()
    await asyncio.wait([canaries])
    goes_down = await shutdown.until_asked(service.table, paths, callers())
    await service.table.close()
    if goes_down:
        await shutdown.until_left(callers(), deadline)
    await door.close()
    for task in sessions:
        task.cancel()
    await asyncio.gather(*sessions, return_exceptions=True)


def _token(paths: Paths) -> str:
    """The per-boot token: read where it exists, else made, 0400."""
    path = paths.token(PROGRAM)
    if not path.exists():
        made = os.open(path.with_suffix(".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o400)
        with os.fdopen(made, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(32))
        path.with_suffix(".new").rename(path)
    return text_of(path, "the token of agent-host", "Boot the box again: a boot makes a new one.")
