"""What stops a plan from being made, although the manifest itself has no finding."""

from agentbox.core.errors import AgentboxError, ExitCode


class PlanError(AgentboxError):
    """Manifest, features and lock disagree, or cannot be held together. The CLI leaves with code 2."""

    exit_code = ExitCode.USAGE


class LockMismatchError(PlanError):
    """The lock was made for other packages than the manifest asks for. The CLI leaves with code 5."""

    exit_code = ExitCode.LOCK
