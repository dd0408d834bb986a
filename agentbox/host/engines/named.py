"""An engine by its name; only that one is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentbox.core.errors import AgentboxError, ExitCode

if TYPE_CHECKING:
    from agentbox.host.engines.docker.docker import Docker
    from agentbox.host.engines.process.process import Process

NAMES: Final = ("auto", "docker", "process")
LATER: Final = "podman"  # known by name, for a sentence that says more than a usage error


def engine_named(name: str) -> Docker | Process:
    """The engine of that name. Raises AgentboxError (exit 2) for one that does not exist, or is not run yet."""
    if name == "docker":
        from agentbox.host.engines.docker.docker import Docker

        return Docker()
    if name == "process":
        from agentbox.host.engines.process.process import Process

        return Process()
    if name == LATER:
        raise AgentboxError(
            "cannot start a box with podman: this release starts boxes with docker or as processes",
            "Use --engine docker or --engine process. `agentbox render podman` writes the arguments of `podman run`; a podman"
            " that takes no uid for a tmpfs (4.3) refuses them.",
            exit_code=ExitCode.USAGE,
        )
    raise AgentboxError(
        f"cannot use the engine {name!r}: there is none of that name",
        f"Engines: {', '.join(NAMES)}.",
        exit_code=ExitCode.USAGE,
    )
