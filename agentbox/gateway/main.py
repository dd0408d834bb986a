"""Runs the gateway: listen, notify, serve until a signal."""

import asyncio
import gc
import signal
import sys

import structlog
import uvloop

from agentbox.box.supervision.applied_plan import plan_in_force
from agentbox.box.supervision.backoff import backoff
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.box.supervision.notify import notify, remove_note
from agentbox.box.supervision.program_failures import report_program_failure
from agentbox.core import logging
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.gateway.authorization_cache import AuthorizationCache
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.server import GatewayServer
from agentbox.plan.names import GATEWAY

log = structlog.get_logger()


def main() -> int:
    """Returns the exit code. An operator error is one line on stderr."""
    paths = Paths.for_this_process()
    try:
        backoff(paths, GATEWAY)
        record = read_boot_record(paths)
        plan = plan_in_force(paths, record.load_plan() if record else load_plan(paths.plan))
        config = GatewayConfig.from_plan(plan, paths)
        logging.configure(GATEWAY, plan.observability.log_level)
        gc.freeze()  # exclude start-up objects from garbage collection
        uvloop.run(serve(config))
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        report_program_failure(paths, GATEWAY, error)
        return int(error.exit_code)
    return 0


async def serve(config: GatewayConfig) -> None:
    """Returns after SIGTERM or SIGINT, once all connections are closed. Raises AgentboxError if the
    port is in use."""
    stop_requested = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop_requested.set)
    config.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    authorizer = AuthorizationCache(config.paths)
    server = GatewayServer(config, authorizer)
    await server.open()
    subscription = asyncio.create_task(authorizer.run(), name="following")
    try:
        notify(config.paths, GATEWAY)
        log.info("listening", port=server.port)
        await stop_requested.wait()
        remove_note(config.paths, GATEWAY)
    finally:
        await server.close()
        subscription.cancel()
        await asyncio.gather(subscription, return_exceptions=True)
