"""System paths that the launcher opens once, before any start."""

from functools import cache

from agentbox.core.linux.path_opener import SYSTEM_DIRECTORIES
from agentbox.core.linux.preopened_paths import PreopenedPaths
from agentbox.sandbox.base_grants import BASE_GRANTS


@cache
def system_paths() -> PreopenedPaths:
    """The grants of every agent, and directories of programs."""
    return PreopenedPaths((*(grant.path for grant in BASE_GRANTS), *SYSTEM_DIRECTORIES))
