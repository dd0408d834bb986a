"""Engines by name; only the selected one is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentbox.core.errors import AgentboxError, ExitCode

if TYPE_CHECKING:
    from agentbox.host.engines.docker.docker import DockerEngine
    from agentbox.host.engines.process.process import ProcessEngine

ENGINE_NAMES: Final = ("auto", "docker", "process")
UNSUPPORTED: Final = "podman"  # known only to give a better error message


def engine_by_name(name: str) -> DockerEngine | ProcessEngine:
    """Return the engine of that name. Raises AgentboxError (exit 2) for an unknown or unsupported
    one.
    """
    if name == "docker":
        from agentbox.host.engines.docker.docker import DockerEngine

        return DockerEngine()
    if name == "process":
        from agentbox.host.engines.process.process import ProcessEngine

        return ProcessEngine()
    if name == UNSUPPORTED:
        raise AgentboxError(
            "cannot start a box with podman: not supported in this release",
            "Use --engine docker or --engine process. `agentbox render podman` writes the "
            "arguments of `podman run`; podman 4.3, which does not support a uid for a tmpfs, "
            "rejects them.",
            exit_code=ExitCode.USAGE,
        )
    raise AgentboxError(
        f"unknown engine: {name!r}",
        f"Engines: {', '.join(ENGINE_NAMES)}.",
        exit_code=ExitCode.USAGE,
    )
