"""Location of agentbox's data files: beside the package in a checkout, `/opt/agentbox/share` in an
image.
"""

from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT, Paths


def config_dir() -> Path:
    """The directory `config`, with `features`, `profiles`, `seccomp`. Raises AgentboxError (exit 2)
    when absent.
    """
    candidates = (CHECKOUT / "config", Paths.for_this_process().share / "config")
    directory = next((path for path in candidates if (path / "features").is_dir()), None)
    if directory is None:
        locations = " or ".join(map(str, candidates))
        raise AgentboxError(
            f"cannot read the directory config/features: it is not at {locations}",
            "Reinstall agentbox: its data files belong beside its Python package.",
            exit_code=ExitCode.USAGE,
        )
    return directory
