"""Which engine runs this box (box.md 8, `auto`), and the packages it needs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from agentbox.engine import daemon
from agentbox.engine.docker import Docker
from agentbox.engine.process import Process
from agentbox.engine.state import BoxRecord
from agentbox.errors import AgentboxError, ExitCode
from agentbox.settings import environment

Engine = Docker | Process
NAMES = ("auto", "docker", "process")


@dataclass(frozen=True)
class Choice:
    """The engine, and why it was chosen."""

    engine: Engine
    because: str


def engine_named(name: str) -> Engine:
    """The engine of that name. Raises AgentboxError (exit 2) for one that does not exist."""
    if name == "docker":
        return Docker()
    if name == "process":
        return Process()
    raise AgentboxError(
        f"cannot use the engine {name!r}: there is none of that name",
        f"Engines: {', '.join(NAMES)}.",
        exit_code=ExitCode.USAGE,
    )


def choose(asked: str, last: BoxRecord | None) -> Choice:
    """`asked`, else AGENTBOX_ENGINE, else the one this box last used, else docker. `auto` never picks `process`."""
    if asked != "auto":
        return Choice(engine_named(asked), "asked for")
    if named := environment().get("AGENTBOX_ENGINE"):
        return Choice(engine_named(named), "AGENTBOX_ENGINE")
    if last is not None:
        return Choice(engine_named(last.engine), "last used")
    return Choice(Docker(), "answers" if daemon.answers() else "the default")


def missing_packages(engine: Engine, *, build: bool) -> list[str]:
    """Debian packages that must be installed before this engine can start a box."""
    wanted: list[str] = []
    if isinstance(engine, Docker):
        if not daemon.answers() and not daemon.installed():
            wanted.append("docker.io")
        if not _has_compose():
            wanted.append("docker-compose")
        if not daemon.answers() and shutil.which("iptables") is None:
            wanted.append("iptables")  # docker.io only recommends it, and dockerd needs it for its bridge
    if build and shutil.which("nix") is None:
        wanted.append("nix-bin")
    return wanted


def _has_compose() -> bool:
    from agentbox.engine.command import succeeds

    return shutil.which("docker-compose") is not None or succeeds(["docker", "compose", "version"])


def is_root() -> bool:
    return os.geteuid() == 0
