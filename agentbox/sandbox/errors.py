"""The error of a spawn that did not reach exec."""

import os

from agentbox.core.errors import AgentboxError


class SpawnFailed(AgentboxError):
    """`stage` is the step that failed: launcher, session, stdio, limits, privileges, cwd,
    confinement or exec; `sandbox` if the sandbox has ended. `reason` is for people.

    No process of the agent is left when this is raised.
    """

    def __init__(self, stage: str, detail: str, errno: int = 0) -> None:
        reason = f"{detail}: {os.strerror(errno)}" if errno else detail
        super().__init__(
            f"cannot start the agent: {reason}", f"Check the {stage} stage of the start."
        )
        self.stage, self.reason = stage, reason
        self.errno = errno
