"""The bridge as an agent-host of its own: it ends with its stdin, and its agents end with it."""

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agentbox.agents.config import HostConfig
from agentbox.agents.main import open_service
from agentbox.agents.registry import reconcile
from agentbox.agents.rpc.service import CAPABILITIES
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.rpc import messages, pipes
from agentbox.core.rpc.session import Session

STATE_DIR = "bridge"
_CAPABILITIES = tuple(name for name in CAPABILITIES if name != "detached")


async def serve(config: HostConfig, fds: tuple[int, int]) -> None:
    """Return once the peer has disconnected or requested shutdown and no agent runs. Raises
    AgentboxError if another bridge uses the directory."""
    config = replace(config, directory=STATE_DIR)
    with _exclusive(config.state_dir):
        async with open_service(config, token=None, capabilities=_CAPABILITIES) as service:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, service.stop.set)
            reader, _ = await pipes.open_reader(fds[0], messages.LINE_LIMIT)
            session = Session(service, reader, await pipes.open_writer(fds[1]))
            reconcile.resume_agents(service.registry)
            service.host.launcher.start()
            serving = asyncio.create_task(session.serve())
            stopped = asyncio.create_task(service.stop.wait())
            await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            service.registry.closing = True
            await service.registry.close()
            for task in (serving, stopped):
                task.cancel()
            await asyncio.gather(serving, stopped, return_exceptions=True)


@contextlib.contextmanager
def _exclusive(directory: Path) -> Iterator[None]:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise AgentboxError(
            f"cannot serve agents from {directory}: another bridge is running",
            "Stop the other bridge, or wait until it exits.",
            exit_code=ExitCode.BUSY,
        ) from None
    try:
        yield
    finally:
        os.close(lock)
