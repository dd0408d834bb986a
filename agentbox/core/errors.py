"""The root of every error that a user may meet, and the exit codes of the CLI."""

import signal
from enum import IntEnum


class ExitCode(IntEnum):
    """What a finished `agentbox` command tells its caller."""

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
    """A failure with a sentence for the user: `cannot <do> <object>: <why>`, then what to do about it.

    The CLI prints `message` and, on the next line, `hint`, and leaves with `exit_code`. Anything that is not an
    AgentboxError is a bug and prints a traceback.
    """

    exit_code: ExitCode = ExitCode.BAD

    def __init__(self, message: str, hint: str = "", *, exit_code: ExitCode | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


def describe_exit(code: int) -> str:
    """How a program ended that said nothing: its exit code, or the signal (`code` below 0) that killed it."""
    return f"exit code {code}" if code >= 0 else f"it was killed ({signal.Signals(-code).name})"
