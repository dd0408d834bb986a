"""Errors of plan building, for a manifest without findings."""

from agentbox.core.errors import AgentboxError, ExitCode


class PlanError(AgentboxError):
    """Manifest, features and lock do not agree, or conflict. CLI exit code 2."""

    exit_code = ExitCode.USAGE


class LockMismatchError(PlanError):
    """The lock is for other packages than the manifest's. CLI exit code 5."""

    exit_code = ExitCode.LOCK
