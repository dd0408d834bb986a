"""Which engine runs this box (`--engine auto`), and the packages it needs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from agentbox.core.paths import environment
from agentbox.host.engines.docker import daemon, reach
from agentbox.host.engines.docker.docker import Docker
from agentbox.host.engines.named import engine_named
from agentbox.host.engines.process.process import Process
from agentbox.host.engines.state import BoxRecord, BoxState

Engine = Docker | Process


@dataclass(frozen=True)
class Choice:
    """The engine, and why it was chosen."""

    engine: Engine
    because: str


def choose(asked: str, last: BoxRecord | None) -> Choice:
    """`asked`, else AGENTBOX_ENGINE, else the one this box last used, else docker. `auto` never picks `process`."""
    if asked != "auto":
        return Choice(engine_named(asked), "asked for")
    if named := environment().get("AGENTBOX_ENGINE"):
        return Choice(engine_named(named), "AGENTBOX_ENGINE")
    if last is not None:
        return Choice(engine_named(last.engine), "last used")
    return Choice(Docker(), "answers" if reach.answers() else "the default")


def find(name: str, state: BoxState, api_url: str) -> BoxRecord | None:
    """A box of that name and state folder that runs though its record is lost, under whichever engine."""
    return Docker().find(name, state, api_url) or Process().find(name, state, api_url)


def leftovers(name: str, state: BoxState) -> list[BoxRecord]:
    """What a box that is down has stored, under each engine."""
    return [found for engine in (Docker(), Process()) if (found := engine.leftover(name, state)) is not None]


def missing_packages(engine: Engine, *, build: bool) -> list[str]:
    """Debian packages that must be installed before this engine can start a box.

    Raises AgentboxError when docker is there and installing would not help: denied, hung, or elsewhere.
    """
    wanted: list[str] = []
    if isinstance(engine, Docker):
        found = reach.reach()
        if found.state != "answers":
            if not found.ours_to_start:
                raise reach.unreachable("start a box", found)
            wanted += [] if daemon.installed() else ["docker.io"]
            wanted += ["docker-cli"] if daemon.installed() and shutil.which("docker") is None else []
            wanted += [] if shutil.which("iptables") else ["iptables"]  # dockerd needs it for its bridge
        wanted += [] if _has_compose() else ["docker-compose"]
    if build and shutil.which("nix") is None:
        wanted.append("nix-bin")
    return wanted


def _has_compose() -> bool:
    from agentbox.host.engines.command import succeeds

    return shutil.which("docker-compose") is not None or succeeds(["docker", "compose", "version"])
