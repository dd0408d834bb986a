"""The program of orchestrator external-stdio, started and ended with its process tree by the
sandbox module."""

import asyncio
from collections.abc import Mapping

import structlog

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.core.paths import PREFIX_VARIABLE
from agentbox.core.rpc import messages, pipes
from agentbox.manifest.slot_options import BridgeOptions
from agentbox.sandbox.launcher.client import AgentProcess, LauncherClient
from agentbox.sandbox.spec import Launch

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
SECRET_ENV_PREFIX = "env:"  # prefix of environment variables among the slot's secrets
_MAX_LOG_LINE = 4096  # bytes; longer lines are split
_STDERR_DRAIN_SECONDS = 0.1  # seconds
log = structlog.get_logger()


class BridgeProcess:
    """Use `start` once. `reader` and `writer` are stdout and stdin; stderr is logged."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def __init__(self) -> None:
        self._launcher = LauncherClient()
        self._process: AgentProcess | None = None
        self._log_task: asyncio.Task[None] | None = None
        self._output_transports: tuple[asyncio.ReadTransport, ...] = ()

    @property
    def pid(self) -> int:
        """0 before the start."""
        return self._process.started.pid if self._process else 0

    async def start(self, cfg: SlotConfig[BridgeOptions]) -> None:
        """Start the program. Raises SpawnFailed; `close` cleans up."""
        cwd = cfg.options.cwd
        directory = str((cfg.paths.resolve(cwd) if cwd else cfg.paths.state).resolve())
        launch = Launch(
            argv=_command(cfg),
            env=_environment(cfg),
            cwd=directory,
            roots=(directory,),
            nice=0,  # a required slot waits for its answers
        )
        process = self._process = await self._launcher.spawn(launch, stdin="pipe")
        assert process.stdin is not None
        self.reader, out_transport = await pipes.open_reader(process.stdout, messages.LINE_LIMIT)
        self.writer = await pipes.open_writer(process.stdin)
        stderr, err_transport = await pipes.open_reader(process.stderr, _MAX_LOG_LINE)
        self._output_transports = (out_transport, err_transport)
        self._log_task = asyncio.create_task(_log_stderr(stderr), name="bridge-stderr")

    def kill(self) -> None:
        """End the process tree now; `close` waits for it."""
        if self._process is not None:
            self._process.end(0)

    async def close(self, grace: float) -> None:
        """Wait `grace` seconds for the exit, then end the process tree. Idempotent, leaves no
        process."""
        try:
            if self._process is not None:
                await asyncio.wait({self._process.ended}, timeout=grace)
                self._process.end(0)
        finally:
            await self._launcher.close()
            # the last output has arrived by now; an escaped process may hold the pipe open
            if self._log_task is not None:
                await asyncio.wait({self._log_task}, timeout=_STDERR_DRAIN_SECONDS)
                self._log_task.cancel()
                await asyncio.wait({self._log_task})
            for transport in self._output_transports:
                transport.close()


def _command(cfg: SlotConfig[BridgeOptions]) -> tuple[str, ...]:
    """Return the command of the manifest; an absolute path is inside the box."""
    program, *arguments = cfg.options.command or ("",)
    return (str(cfg.paths.resolve(program)) if program.startswith("/") else program, *arguments)


def _environment(cfg: SlotConfig[BridgeOptions]) -> Mapping[str, str]:
    """Return a fixed list and the variables that the manifest passes, without unset ones."""
    prefix = {} if cfg.paths.is_container else {PREFIX_VARIABLE: str(cfg.paths.prefix)}
    manifest_env = {
        name.removeprefix(SECRET_ENV_PREFIX): value
        for name, value in cfg.secrets.items()
        if name.startswith(SECRET_ENV_PREFIX)
    }
    return {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", **manifest_env, **prefix}


async def _log_stderr(stderr: asyncio.StreamReader) -> None:
    partial = b""
    while chunk := await stderr.read(_MAX_LOG_LINE):
        *lines, partial = (partial + chunk).split(b"\n")
        if len(partial) > _MAX_LOG_LINE:
            lines, partial = [*lines, partial], b""
        for line in filter(None, lines):
            log.info("bridge", said=line.decode("utf-8", "replace"))
