"""The program behind orchestrator external-stdio: started by the sandbox module, gone with its whole tree."""

import asyncio
from collections.abc import Mapping

import structlog

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.core.paths import PREFIX_VARIABLE
from agentbox.core.rpc import messages, pipes
from agentbox.sandbox.launcher.client import AgentProcess, LauncherClient
from agentbox.sandbox.spec import Launch

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
SECRET_ENV_PREFIX = (
    "env:"  # what the name of a variable has before it among the secrets of the slot
)
_MAX_LOG_LINE = 4096  # bytes; what is longer is cut into several
_STDERR_DRAIN_SECONDS = 0.1  # seconds
log = structlog.get_logger()


class BridgeProcess:
    """Use `start` once. `reader` and `writer` are its stdout and stdin; its stderr goes to our log, line by line."""

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

    async def start(self, cfg: SlotConfig) -> None:
        """Returns once the program runs. Raises SpawnFailed; then nothing is left after `close`."""
        cwd_option = str(cfg.option("cwd", ""))
        directory = str(
            (cfg.paths.resolve(cwd_option) if cwd_option else cfg.paths.state).resolve()
        )
        launch = Launch(
            argv=_command(cfg), env=_environment(cfg), cwd=directory, roots=(directory,)
        )
        process = self._process = await self._launcher.spawn(launch, stdin="pipe")
        assert process.stdin is not None
        self.reader, out_transport = await pipes.open_reader(process.stdout, messages.LINE_LIMIT)
        self.writer = await pipes.open_writer(process.stdin)
        stderr, err_transport = await pipes.open_reader(process.stderr, _MAX_LOG_LINE)
        self._output_transports = (out_transport, err_transport)
        self._log_task = asyncio.create_task(_log_stderr(stderr), name="bridge-stderr")

    def kill(self) -> None:
        """Ends the tree now; `close` waits for it."""
        if self._process is not None:
            self._process.end(0)

    async def close(self, grace: float) -> None:
        """Gives it `grace` seconds to leave by itself, then ends the tree. Idempotent, leaves no process."""
        try:
            if self._process is not None:
                await asyncio.wait({self._process.ended}, timeout=grace)
                self._process.end(0)
        finally:
            await self._launcher.close()
            if (
                self._log_task is not None
            ):  # what it said last is there by now; a process that got away may hold the pipe
                await asyncio.wait({self._log_task}, timeout=_STDERR_DRAIN_SECONDS)
                self._log_task.cancel()
                await asyncio.wait({self._log_task})
            for transport in self._output_transports:
                transport.close()


def _command(cfg: SlotConfig) -> tuple[str, ...]:
    """The manifest's words; an absolute path is one of the box."""
    program, *arguments = cfg.option("command", ("",)) or ("",)
    return (str(cfg.paths.resolve(program)) if program.startswith("/") else program, *arguments)


def _environment(cfg: SlotConfig) -> Mapping[str, str]:
    """A short fixed list, and the variables that the manifest passes. What is not set is left out."""
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
