"""What is wrong with a lock file."""

from agentbox.core.errors import AgentboxError, ExitCode


class LockError(AgentboxError):
    """The lock is missing, unreadable, or not the one that is needed. Exit 5."""

    exit_code = ExitCode.LOCK
