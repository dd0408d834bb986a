"""The gateway from its start to its end: listen, notify, serve until told to end."""

import asyncio
import gc
import signal
import sys

import structlog
import uvloop

from agentbox.box.supervision.applied import in_force
from agentbox.box.supervision.backoff import backoff
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.box.supervision.failing import tell_failed
from agentbox.box.supervision.notify import notify, withdraw
from agentbox.core import logging
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.gateway.authorization_cache import Following
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.server import Server
from agentbox.plan.names import GATEWAY

log = structlog.get_logger()


def main() -> int:
    """The exit code. An error of the operator's making is one line on stderr."""
    paths = Paths.of_this_process()
    try:
        backoff(paths, GATEWAY)
        record = read_boot_record(paths)
        plan = in_force(paths, record.load_plan() if record else load_plan(paths.plan))
        config = GatewayConfig.from_plan(plan, paths)
        logging.configure(GATEWAY, plan.observability.log_level)
        gc.freeze()  # what start made lives for ever: collections need not look at it again
        uvloop.run(serve(config))
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        tell_failed(paths, GATEWAY, error)
        return int(error.exit_code)
    return 0


async def serve(config: GatewayConfig) -> None:
    """Returns after SIGTERM or SIGINT, when every connection is closed. Raises AgentboxError for a port that is taken."""
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = Following(config.paths)
    server = Server(config, authority)
    await server.open()
    following = asyncio.create_task(authority.follow(), name="following")
    try:
        notify(config.paths, GATEWAY)
        log.info("listening", port=server.port)
        await asked.wait()
        withdraw(config.paths, GATEWAY)
    finally:
        await server.close()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
