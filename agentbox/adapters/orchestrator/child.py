"""The program behind orchestrator external-stdio: started by the sandbox module, gone with its whole tree."""

import asyncio
from collections.abc import Mapping

import structlog

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.core.paths import PREFIX_VARIABLE
from agentbox.core.rpc import messages, pipes
from agentbox.sandbox.launcher.client import Agent, Launcher
from agentbox.sandbox.spec import Launch

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
ENV = "env:"  # what the name of a variable has before it among the secrets of the slot
_LOG_LINE = 4096  # bytes; what is longer is cut into several
_LAST_WORDS = 0.1  # seconds
log = structlog.get_logger()


class Child:
    """Use `start` once. `reader` and `writer` are its stdout and stdin; its stderr goes to our log, line by line."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def __init__(self) -> None:
        self._launcher = Launcher()
        self._agent: Agent | None = None
        self._telling: asyncio.Task[None] | None = None
        self._inward: tuple[asyncio.ReadTransport, ...] = ()

    @property
    def pid(self) -> int:
        """0 before the start."""
        return self._agent.started.pid if self._agent else 0

    async def start(self, cfg: SlotConfig) -> None:
        """Returns once the program runs. Raises SpawnFailed; then nothing is left after `close`."""
        asked = str(cfg.option("cwd", ""))
        folder = str((cfg.paths.at(asked) if asked else cfg.paths.state).resolve())
        launch = Launch(argv=_command(cfg), env=_environment(cfg), cwd=folder, roots=(folder,))
        agent = self._agent = await self._launcher.spawn(launch, stdin="pipe")
        assert agent.stdin is not None
        self.reader, out = await pipes.reading(agent.stdout, messages.LINE_LIMIT)
        self.writer = await pipes.writing(agent.stdin)
        said, err = await pipes.reading(agent.stderr, _LOG_LINE)
        self._inward = (out, err)
        self._telling = asyncio.create_task(_tell(said), name="bridge-stderr")

    def kill(self) -> None:
        """Ends the tree now; `close` waits for it."""
        if self._agent is not None:
            self._agent.end(0)

    async def close(self, grace: float) -> None:
        """Gives it `grace` seconds to leave by itself, then ends the tree. Idempotent, leaves no process."""
        try:
            if self._agent is not None:
                await asyncio.wait({self._agent.ended}, timeout=grace)
                self._agent.end(0)
        finally:
            await self._launcher.close()
            if (
                self._telling is not None
            ):  # what it said last is there by now; a process that got away may hold the pipe
                await asyncio.wait({self._telling}, timeout=_LAST_WORDS)
                self._telling.cancel()
                await asyncio.wait({self._telling})
            for end in self._inward:
                end.close()


def _command(cfg: SlotConfig) -> tuple[str, ...]:
    """The manifest's words; an absolute path is one of the box."""
    program, *rest = cfg.option("command", ("",)) or ("",)
    return (str(cfg.paths.at(program)) if program.startswith("/") else program, *rest)


def _environment(cfg: SlotConfig) -> Mapping[str, str]:
    """A short fixed list, and the variables that the manifest passes. What is not set is left out."""
    prefix = {} if cfg.paths.contained else {PREFIX_VARIABLE: str(cfg.paths.prefix)}
    given = {name.removeprefix(ENV): value for name, value in cfg.secrets.items() if name.startswith(ENV)}
    return {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", **given, **prefix}


async def _tell(stderr: asyncio.StreamReader) -> None:
    rest = b""
    while said := await stderr.read(_LOG_LINE):
        *lines, rest = (rest + said).split(b"\n")
        if len(rest) > _LOG_LINE:
            lines, rest = [*lines, rest], b""
        for line in filter(None, lines):
            log.info("bridge", said=line.decode("utf-8", "replace"))
