"""The base class of all errors shown to users, and the exit codes of the CLI."""

import signal
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the `agentbox` command."""

    DONE = 0
    BAD = 1
    USAGE = 2
    PREREQUISITE = 3
    FETCH = 4
    LOCK = 5
    ENGINE = 6
    BUSY = 7
    NOT_RUNNING = 8
    INTERRUPTED = 130


class AgentboxError(Exception):
    """An error with a message for the user: `cannot <do> <object>: <why>`, then a hint. The CLI
    prints `message`, then `hint` on the next line, and exits with `exit_code`. Any other exception
    is a bug and prints a traceback.
    """

    exit_code: ExitCode = ExitCode.BAD

    def __init__(self, message: str, hint: str = "", *, exit_code: ExitCode | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


def describe_exit(code: int) -> str:
    """Describes how a program ended: its exit code, or the signal (`code` below 0) that
    killed it.
    """
    return f"exit code {code}" if code >= 0 else f"it was killed ({signal.Signals(-code).name})"
