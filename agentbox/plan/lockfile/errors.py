"""Errors of the lock file."""

from agentbox.core.errors import AgentboxError, ExitCode


class LockError(AgentboxError):
    """The lock is missing, unreadable, or not the required one. Exit 5."""

    exit_code = ExitCode.LOCK
