"""Selects the engine of a box (`--engine auto`) and the packages it needs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from agentbox.core.paths import environment
from agentbox.host.engines.docker import daemon, daemon_status
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.process.process import ProcessEngine
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.state import BoxRecord, BoxState

Engine = DockerEngine | ProcessEngine


@dataclass(frozen=True)
class EngineChoice:
    """The engine, and why it was chosen."""

    engine: Engine
    reason: str


def select_engine(requested: str, last: BoxRecord | None) -> EngineChoice:
    """Select `requested`, else AGENTBOX_ENGINE, else the last one of this box, else docker; `auto`
    never selects `process`.
    """
    if requested != "auto":
        return EngineChoice(engine_by_name(requested), "requested")
    if configured := environment().get("AGENTBOX_ENGINE"):
        return EngineChoice(engine_by_name(configured), "AGENTBOX_ENGINE")
    if last is not None:
        return EngineChoice(engine_by_name(last.engine), "last used")
    return EngineChoice(
        DockerEngine(), "answers" if daemon_status.is_reachable() else "the default"
    )


def find_running(name: str, state: BoxState, api_url: str) -> BoxRecord | None:
    """Find a running box of that name and state directory whose record is lost, under any
    engine.
    """
    return DockerEngine().find_running(name, state, api_url) or ProcessEngine().find_running(
        name, state, api_url
    )


def find_stored(name: str, state: BoxState) -> list[BoxRecord]:
    """Return the stored data of a box that is down, under each engine."""
    return [
        record
        for engine in (DockerEngine(), ProcessEngine())
        if (record := engine.find_stored(name, state)) is not None
    ]


def missing_packages(engine: Engine, *, build: bool) -> list[str]:
    """Return the Debian packages to install before this engine can start a box.

    Raises AgentboxError if docker is installed but unusable: no permission, no response, or a
    remote address.
    """
    packages: list[str] = []
    if isinstance(engine, DockerEngine):
        status = daemon_status.query_status()
        if status.state != "answers":
            if not status.is_startable:
                raise daemon_status.unreachable_error("start a box", status)
            packages += [] if daemon.is_installed() else ["docker.io"]
            packages += (
                ["docker-cli"] if daemon.is_installed() and shutil.which("docker") is None else []
            )
            packages += (
                [] if shutil.which("iptables") else ["iptables"]
            )  # dockerd needs it for its bridge
        packages += [] if _has_compose() else ["docker-compose"]
    if build and shutil.which("nix") is None:
        packages.append("nix-bin")
    return packages


def _has_compose() -> bool:
    from agentbox.host.engines.command import succeeds

    return shutil.which("docker-compose") is not None or succeeds(["docker", "compose", "version"])
