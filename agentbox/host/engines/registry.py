"""An engine by its name; only that one is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentbox.core.errors import AgentboxError, ExitCode

if TYPE_CHECKING:
    from agentbox.host.engines.docker.docker import DockerEngine
    from agentbox.host.engines.process.process import ProcessEngine

ENGINE_NAMES: Final = ("auto", "docker", "process")
UNSUPPORTED: Final = "podman"  # known by name, for a sentence that says more than a usage error


def engine_by_name(name: str) -> DockerEngine | ProcessEngine:
    """The engine of that name. Raises AgentboxError (exit 2) for one that does not exist, or is not run yet."""
    if name == "docker":
        from agentbox.host.engines.docker.docker import DockerEngine

        return DockerEngine()
    if name == "process":
        from agentbox.host.engines.process.process import ProcessEngine

        return ProcessEngine()
    if name == UNSUPPORTED:
        raise AgentboxError(
            "cannot start a box with podman: this release starts boxes with docker or as processes",
            "Use --engine docker or --engine process. `agentbox render podman` writes the arguments of `podman run`; a podman"
            " that takes no uid for a tmpfs (4.3) refuses them.",
            exit_code=ExitCode.USAGE,
        )
    raise AgentboxError(
        f"cannot use the engine {name!r}: there is none of that name",
        f"Engines: {', '.join(ENGINE_NAMES)}.",
        exit_code=ExitCode.USAGE,
    )
